// SPDX-License-Identifier: Apache-2.0
// Table: how rows of one kind (drives, volumes) are shown, one per line: what each is, its state in a word, columns of
// figures, and a note. Columns that do not fit are left out, the least important first. Only for the files of `top`.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "exporters/terminal/top_screen.h"
#include "exporters/terminal/top_words.h"

namespace ssdpulse::terminal {

template <typename Row>
struct Column {
  const char* head;
  std::size_t width;
  int importance;  // 1 is last to go
  std::string (*text)(const Row&);
};

/// `Row`: has a `name`, and a `use`, which may be empty.
template <typename Row>
struct Table {
  const char* head;
  const char* state_head;
  std::size_t state_width;
  std::span<const Column<Row>> columns;
  int last_importance;
  int always_shown;        // less important columns are shown only if there is also room for a note
  std::size_t note_width;  // that much
  std::string (*state)(const Row&);
  std::string (*note)(const Row&);
  Style (*style)(const Row&);
};

/// Of the first column: wide enough for what the rows are used for, but at most a quarter of the screen.
template <typename Row>
std::size_t name_width(const std::vector<const Row*>& rows, std::size_t width) {
  constexpr std::size_t kMinNameWidth = 12;
  std::size_t longest = 0;
  for (const Row* row : rows) {
    longest = std::max(longest, row->name.size() + (row->use.empty() ? 0 : row->use.size() + 3));
  }
  return std::max(kMinNameWidth, std::min(longest + 1, width / 4));
}

template <typename Row>
std::vector<const Column<Row>*> columns_that_fit(const Table<Row>& table, std::size_t width, std::size_t names) {
  for (int importance = table.last_importance; importance > 0; --importance) {
    std::size_t used = names + table.state_width + (importance > table.always_shown ? table.note_width : 0);
    std::vector<const Column<Row>*> columns;
    for (const Column<Row>& column : table.columns) {
      if (column.importance <= importance) {
        columns.push_back(&column);
        used += column.width;
      }
    }
    if (used <= width) {
      return columns;
    }
  }
  return {};
}

/// From the row `top` up to `bottom`, exclusive. `chosen`: one of the rows, or null.
template <typename Row>
void draw_table(Grid& grid, std::size_t top, std::size_t bottom, const Table<Row>& table,
                const std::vector<const Row*>& rows, const Row* chosen) {
  const std::size_t names = name_width(rows, grid.width());
  const auto columns = columns_that_fit(table, grid.width(), names);
  const auto put_figures = [&](std::size_t y, Style style, auto text_of) {
    std::size_t end = names + table.state_width;
    for (const Column<Row>* column : columns) {
      end += column->width;
      grid.put_right(end, y, text_of(*column), style);
    }
    return end;
  };
  grid.fill(top, Style::faint);
  grid.put(0, top, table.head, Style::faint);
  grid.put(names, top, table.state_head, Style::faint);
  put_figures(top, Style::faint, [](const Column<Row>& column) { return column.head; });
  const auto at = static_cast<std::size_t>(std::find(rows.begin(), rows.end(), chosen) - rows.begin());
  const std::size_t lines = bottom - top - 1;
  const std::size_t first = at < lines ? 0 : at - lines + 1;  // the chosen one is always in sight
  for (std::size_t i = 0; i < lines && first + i < rows.size(); ++i) {
    const Row& row = *rows[first + i];
    const std::size_t y = top + 1 + i;
    const Style style = &row == chosen ? Style::selected : table.style(row);
    grid.fill(y, style);
    grid.put(0, y, drive_text(row.use, row.name, names - 1), style);
    grid.put(names, y, table.state(row), style);
    const std::size_t end = put_figures(y, style, [&](const Column<Row>& column) { return column.text(row); });
    if (end + 12 < grid.width()) {
      grid.put(end + 2, y, table.note(row), style);
    }
  }
}

}  // namespace ssdpulse::terminal
