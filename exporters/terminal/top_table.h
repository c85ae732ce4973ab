// SPDX-License-Identifier: Apache-2.0
// Table: how rows of one kind (drives, volumes, tenants) are shown, one per line: what each is, its state in a word,
// columns of figures, and a note. Columns that do not fit are left out, the least important first, and so are those
// that no row can fill. Only for the files of `top`.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "exporters/terminal/top_screen.h"
#include "exporters/terminal/top_words.h"
#include "exporters/words/shared.h"

namespace ssdpulse::terminal {

template <typename Row>
struct Column {
  const char* head;
  const char* unit;  // below the head
  std::size_t width;
  int importance;  // 1 is last to go
  std::string (*text)(const Row&);
  bool may_be_absent = false;  // if every row lacks it
};

template <typename Row>
struct Table {
  const char* head;
  const char* state_head;
  std::span<const Column<Row>> columns;
  int last_importance;
  int always_shown;        // less important columns are shown only if there is also room for a note
  std::size_t name_share;  // the first column has at most one of so many parts of the screen
  std::string (*label)(const Row&, std::size_t width);
  std::string (*state)(const Row&);
  std::string (*note)(const Row&);
  Style (*style)(const Row&);
};

constexpr std::size_t kNoteWidth = 32;

/// Wide enough for all of these texts and a blank, within bounds.
template <typename Row, typename Text>
std::size_t width_for(const std::vector<const Row*>& rows, std::size_t least, std::size_t most, Text text_of) {
  std::size_t longest = 0;
  for (const Row* row : rows) {
    longest = std::max(longest, characters(text_of(*row)).size());
  }
  return std::max(least, std::min(longest + 1, most));
}

template <typename Row>
std::vector<const Column<Row>*> columns_that_fit(const Table<Row>& table, const std::vector<const Row*>& rows,
                                                 std::size_t room) {
  const auto is_filled = [&](const Column<Row>& column) {
    return !column.may_be_absent || std::any_of(rows.begin(), rows.end(), [&](const Row* row) {
      const std::string text = column.text(*row);
      return text != kNotKnown && text != words::shared::kNone;
    });
  };
  std::vector<const Column<Row>*> all;
  for (const Column<Row>& column : table.columns) {
    if (is_filled(column)) {
      all.push_back(&column);
    }
  }
  for (int importance = table.last_importance; importance > 0; --importance) {
    std::size_t used = importance > table.always_shown ? kNoteWidth : 0;
    std::vector<const Column<Row>*> columns;
    for (const Column<Row>* column : all) {
      if (column->importance <= importance) {
        columns.push_back(column);
        used += column->width;
      }
    }
    if (used <= room) {
      return columns;
    }
  }
  return {};
}

/// From the row `top` up to `bottom`, exclusive. `chosen`: one of the rows, or null.
template <typename Row>
void draw_table(Grid& grid, std::size_t top, std::size_t bottom, const Table<Row>& table,
                const std::vector<const Row*>& rows, const Row* chosen) {
  constexpr std::size_t kMinNames = 12;
  constexpr std::size_t kMinState = 7;
  const std::size_t max_state = std::clamp<std::size_t>(grid.width() / 5, kMinState, 16);
  const std::size_t names = width_for(rows, kMinNames, std::max(kMinNames, grid.width() / table.name_share),
                                      [&](const Row& row) { return table.label(row, std::string::npos); });
  const std::size_t states = *table.state_head == '\0' ? 0 : width_for(rows, kMinState, max_state, [&](const Row& row) {
    return table.state(row);
  });
  const std::size_t figures = names + states;
  const auto columns = columns_that_fit(table, rows, grid.width() - std::min(grid.width(), figures));
  const auto put_figures = [&](std::size_t y, Style style, auto text_of) {
    std::size_t end = figures;
    for (const Column<Row>* column : columns) {
      end += column->width;
      grid.put_right(end, y, first_characters(text_of(*column), column->width - 1), style);
    }
    return end;
  };
  grid.put(0, top, table.head, Style::faint);
  grid.put(names, top, table.state_head, Style::faint);
  put_figures(top, Style::faint, [](const Column<Row>& column) { return column.head; });
  if (top + 1 < bottom) {
    put_figures(top + 1, Style::faint, [](const Column<Row>& column) { return column.unit; });
  }
  const std::size_t first_line = top + 2;
  const auto at = static_cast<std::size_t>(std::find(rows.begin(), rows.end(), chosen) - rows.begin());
  const std::size_t lines = bottom - std::min(bottom, first_line);
  const std::size_t first = at < lines ? 0 : at - lines + 1;  // the chosen one is always in sight
  for (std::size_t i = 0; i < lines && first + i < rows.size(); ++i) {
    const Row& row = *rows[first + i];
    const std::size_t y = first_line + i;
    const Style style = &row == chosen ? Style::selected : table.style(row);
    grid.fill(y, style);
    grid.put(0, y, table.label(row, names - 1), style);
    grid.put(names, y, states == 0 ? "" : first_characters(table.state(row), states - 1), style);
    const std::size_t end = put_figures(y, style, [&](const Column<Row>& column) { return column.text(row); });
    if (end + 12 < grid.width()) {
      grid.put(end + 2, y, table.note(row), style);
    }
  }
}

}  // namespace ssdpulse::terminal
