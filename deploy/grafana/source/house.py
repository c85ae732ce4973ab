# SPDX-License-Identifier: Apache-2.0
"""What do our dashboards look like? Panels, colours, variables and the page that places them; no metric is named here.

Every panel must have a title, a description, a unit and at least one query: the functions require them. Colours belong
to a value of a label (the operation `read` is the same blue everywhere), never to a position in a legend.
"""
import json
from pathlib import Path

from grafana_foundation_sdk.builders import (
    common,
    dashboard,
    heatmap,
    prometheus,
    stat,
    statetimeline,
    table,
    timeseries,
)
from grafana_foundation_sdk.models import common as common_models
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models import heatmap as heatmap_models
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

DATASOURCE = models.DataSourceRef(type_val="prometheus", uid="$datasource")
UNKNOWN, NONE_KNOWN = "nothing was measured", "none known"
GREEN, YELLOW, RED, GREY, BLUE = "#73BF69", "#FADE2A", "#F2495C", "#8E8E8E", "#5794F2"


def causes():
    """Cause of a spike -> what is said of it: the table of daemon/model/spike_cause.h, as the page has it."""
    script = (Path(__file__).parents[3] / "exporters/page/assets/causes.js").read_text()
    return json.loads(script.split("export const CAUSES = ")[1].rstrip().rstrip(";"))


# Label -> value -> colour. What a discard does is red wherever it appears, what a flush does is purple.
COLOURS = {
    "operation": {
        "read": BLUE, "write": "#FF9830", "flush": "#B877D9", "discard": RED, "write_zeroes": GREY,
        "secure_erase": "#AD0317", "zone": "#96D98D", "passthrough": "#CCCCDC", "commit": "#DEB6F2",
    },
    "during": {"none": GREEN, "discard": RED, "flush": "#B877D9", "both": "#AD0317"},
    "cause": {cause: entry["colour"] for cause, entry in causes().items()},
    "trigger": {"fstrim": RED, "online": "#FFA6B0", "blkdiscard": "#AD0317", "mkfs": "#B877D9", "other": GREY},
    "hint": {
        "short": RED, "medium": "#FF9830", "long": BLUE, "extreme": "#1F60C4", "none": "#CCCCDC", "not_set": GREY,
        "unknown": "#5A5A5A",
    },
    "class": {
        "journal": "#B877D9", "metadata": YELLOW, "writeback": BLUE, "direct": "#FF9830", "swap": RED, "other": GREY,
    },
    "window": {"5m": "#FFA6B0", "1h": "#FF9830", "24h": BLUE, "7d": "#B877D9", "lifetime": GREY},
    "side": {"host": BLUE, "media": "#FF9830", "idle": GREY, "queue": "#8AB8FF", "device": "#FF9830"},
    "interference": {
        "discard, read": RED, "discard, write": "#FFA6B0", "flush, read": "#B877D9", "flush, write": "#DEB6F2",
    },
    "bound": {"ratio": "#FF9830", "drift": "#FF9830", "lower": GREY, "upper": GREY},
}

UP = {"0": ("down", RED), "1": ("up", GREEN)}
LIMIT_LEVELS = {"0": ("nothing", GREEN), "1": ("tenants, paths, samples", YELLOW), "2": ("all but total latency", YELLOW),
                "3": ("everything", RED)}
ALARM = {"0": ("no", GREEN), "1": ("YES", RED)}


def targets(panel, queries, instant=False, query_format=None):
    """Gives the panel its queries: (expression, legend), one or a list."""
    for number, (expression, legend) in enumerate([queries] if isinstance(queries, tuple) else queries):
        query = prometheus.Dataquery().ref_id(chr(ord("A") + number)).expr(expression).legend_format(legend)
        query = query.instant() if instant else query.range()
        panel.with_target(query.format(query_format) if query_format else query)
    return panel


def coloured(panel, label):
    """A series belongs to a value of the label if its name begins with it."""
    for value, colour in COLOURS.get(label, {}).items():
        fixed = {"mode": "fixed", "fixedColor": colour}
        panel.override_by_regexp(f"/^{value}( |$)/", [models.DynamicConfigValue("color", fixed)])
    return panel


def thresholds(steps):
    """steps: (lower bound, colour); the first bound is None."""
    return dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(
        [models.Threshold(value=value, color=colour) for value, colour in steps]
    )


def by_threshold(panel, steps):
    panel.thresholds(thresholds(steps))
    return panel.color_scheme(dashboard.FieldColor().mode(models.FieldColorModeId.THRESHOLDS))


def value_mapping(texts):
    options = {
        value: models.ValueMappingResult(text=text, color=colour, index=index)
        for index, (value, (text, colour)) in enumerate(texts.items())
    }
    return [models.ValueMap(options=options)]


def dressed(panel, title, about, unit, span, height):
    panel.title(title).description(about).unit(unit).span(span).height(height).datasource(DATASOURCE)
    return panel


def empty(panel, nothing):
    """The text shown instead of "No data": what that means here. Nothing is good news only where all of it is known."""
    return panel.no_value(nothing)


def lines(title, about, unit, queries, colour=None, span=8, height=7, stack=None, bars=False, log=None,
          maximum=None, minimum=0, nothing=UNKNOWN):
    """Values over time. stack: "normal" or "percent"; log: base of a logarithmic scale, for values of all magnitudes.

    bars: how much something grew, queried with $__interval; a bar always covers several scrapes.
    """
    panel = targets(dressed(timeseries.Panel(), title, about, unit, span, height), queries)
    # An isolated value is drawn as a point; an area has none.
    points = common_models.VisibilityMode.NEVER if stack else common_models.VisibilityMode.AUTO
    panel.interval("1m" if bars else "15s").line_width(1).show_points(points)
    panel.fill_opacity(60 if bars else 30 if stack else 8)
    if bars:
        panel.draw_style(common_models.GraphDrawStyle.BARS)
    if stack:
        panel.stacking(common.StackingConfig().mode(common_models.StackingMode(stack)).group("A"))
    if log:
        scale = common.ScaleDistributionConfig().type(common_models.ScaleDistribution.LOG).log(log)
        panel.scale_distribution(scale)
    elif minimum is not None:
        panel.min(minimum)
    if maximum is not None:
        panel.max(maximum)
    elif unit == "percentunit":
        panel.axis_soft_max(0.01)  # a series that is always 0 would get an axis up to 10000 %
    panel.legend(common.VizLegendOptions().display_mode(common_models.LegendDisplayMode.LIST)
                 .placement(common_models.LegendPlacement.BOTTOM).show_legend(True).calcs([]))
    panel.tooltip(common.VizTooltipOptions().mode(common_models.TooltipDisplayMode.MULTI)
                  .sort(common_models.SortOrder.DESCENDING))
    return coloured(empty(panel, nothing), colour)


def number(title, about, unit, query, steps=((None, BLUE),), span=4, texts=None, nothing="-", names=False,
           decimals=None):
    """One current value; unknown is grey. names: shows the names of the series that exist."""
    panel = targets(dressed(stat.Panel(), title, about, unit, span, 4), query, instant=True)
    panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).fields("").values(False))
    panel.graph_mode(common_models.BigValueGraphMode.NONE).no_value(nothing)
    panel.color_mode(common_models.BigValueColorMode.VALUE)
    if names:
        panel.text_mode(common_models.BigValueTextMode.VALUE_AND_NAME)
        panel.text(common.VizTextDisplayOptions().title_size(20).value_size(20))
    else:
        panel.text_mode(common_models.BigValueTextMode.VALUE)
        panel.text(common.VizTextDisplayOptions().value_size(34))
    if texts:
        panel.mappings(value_mapping(texts))
    if decimals is not None:
        panel.decimals(decimals)
    (_, first), *others = steps
    return by_threshold(panel, [(None, GREY), (0, first), *others])


def worst(title, about, unit, expression, steps, columns, span=6, height=8, links=None, reverse=False, nothing=NONE_KNOWN):
    """The worst of many, as bars, worst first. columns: (label, heading) of the labels that distinguish the series."""
    panel = listing(title, about, [("Value", unit, expression, steps)], order=[name for name, _ in columns],
                    rename=dict(columns), span=span, height=height, links=links, nothing=nothing)
    cell = {"type": "gauge", "mode": "basic", "valueDisplayMode": "color"}
    panel.override_by_name("Value", [
        models.DynamicConfigValue("custom.cellOptions", cell),
        models.DynamicConfigValue("min", 0),
        models.DynamicConfigValue("custom.minWidth", 125),
        models.DynamicConfigValue("displayName", " "),
    ])
    return panel.sort_by([common.TableSortByFieldState().display_name(" ").desc(not reverse)])


def latency_heatmap(title, about, query, classic=False, span=12, height=8):
    """Latencies over time. Native histograms are drawn only from time series, classic ones only from buckets."""
    query_format = PromQueryFormat.HEATMAP if classic else PromQueryFormat.TIME_SERIES
    panel = targets(dressed(heatmap.Panel(), title, about, "s", span, height), query, query_format=query_format)
    panel.interval("15s").max_data_points(200).calculate(False).cell_gap(0).show_legend().show_tooltip()
    panel.color(heatmap.HeatmapColorOptions().mode(heatmap_models.HeatmapColorMode.SCHEME).scheme("Spectral")
                .scale(heatmap_models.HeatmapColorScale.EXPONENTIAL).exponent(0.4).steps(64).reverse(False)
                .fill("dark-orange"))
    panel.y_axis(heatmap.YAxisConfig().unit("s").axis_placement(common_models.AxisPlacement.LEFT))
    panel.cell_values(heatmap.CellValues().unit("reqps"))
    panel.rows_frame(heatmap.RowsHeatmapOptions().layout(common_models.HeatmapCellLayout.AUTO))
    return panel.filter_values(heatmap.FilterValueRange().le(1e-9))


def states(title, about, queries, colour=None, texts=None, span=12, height=6, nothing=UNKNOWN):
    """Which state held when: one bar per series, in the colour of its name or of the texts of its values."""
    panel = targets(dressed(statetimeline.Panel(), title, about, "short", span, height), queries)
    panel.interval("15s").show_value(common_models.VisibilityMode.NEVER).merge_values(True).row_height(0.8)
    panel.legend(common.VizLegendOptions().show_legend(False)
                 .display_mode(common_models.LegendDisplayMode.LIST)
                 .placement(common_models.LegendPlacement.BOTTOM).calcs([]))
    panel.mappings(value_mapping(texts or {"0": ("no", "#2B2F36")}))
    return coloured(empty(panel.fill_opacity(80), nothing), colour)


def listing(title, about, columns, order=(), hide=(), rename=None, sort=None, span=24, height=8, links=None,
            nothing=NONE_KNOWN):
    """Rows joined by their labels. columns: (heading, unit, expression, steps or None); no heading: only its labels."""
    panel = dressed(table.Panel(), title, about, columns[0][1], span, height)
    targets(panel, [(expression, "") for _, _, expression, _ in columns], instant=True,
            query_format=PromQueryFormat.TABLE)
    names = {"Time": None, "__name__": None, **dict.fromkeys(hide)}
    renamed = {"instance": "Host", "device": "Device", "controller": "Drive", "mountpoint": "Mount point", "job": "Job", **(rename or {})}
    # The links of a row need its job; the reader does not.
    panel.override_by_name("Job", [models.DynamicConfigValue("custom.hidden", True)])
    for index, (heading, unit, _, steps) in enumerate(columns):
        value = "Value" if len(columns) == 1 else f"Value #{chr(ord('A') + index)}"
        if not heading:
            names[value] = None
            continue
        renamed[value] = heading
        properties = [models.DynamicConfigValue("unit", unit), models.DynamicConfigValue("custom.minWidth", 85)]
        if steps:
            config = {"mode": "absolute", "steps": [{"value": value, "color": colour} for value, colour in steps]}
            properties += [models.DynamicConfigValue("thresholds", config),
                           models.DynamicConfigValue("custom.cellOptions", {"type": "color-text"})]
        panel.override_by_name(heading, properties)
    for heading, link in (links or {}).items():
        panel.override_by_name(heading, [models.DynamicConfigValue("links", [link])])
    for heading in ("Host", "Device", "Drive"):
        panel.override_by_name(heading, [models.DynamicConfigValue("custom.minWidth", 85)])
    if len(columns) > 1:
        panel.with_transformation(models.DataTransformerConfig(id_val="merge", options={}))
    panel.with_transformation(models.DataTransformerConfig(id_val="organize", options={
        "excludeByName": dict.fromkeys(names, True),
        "indexByName": {name: index for index, name in enumerate(order)},
        "renameByName": renamed,
    }))
    if sort:
        panel.sort_by([common.TableSortByFieldState().display_name(sort).desc(True)])
    return empty(panel, nothing).show_header(True).cell_height(common_models.TableCellHeight.SM)


class Episode(models.AnnotationQuery):
    """A span of time that a Prometheus query marks; the SDK's own type lacks the fields of that data source."""

    def __init__(self, name, expression, colour, title, text, tags):
        super().__init__(name=name, datasource=DATASOURCE, enable=True, icon_color=colour, expr=expression)
        self.more = {"titleFormat": title, "textFormat": text, "tagKeys": tags, "step": "15s", "useValueForTime": False}

    def to_json(self):
        return {**super().to_json(), **self.more}

    def build(self):
        return self


def choice(name, label, query, several=True, hidden=False, all_value=None, regex=None):
    """A variable whose values come from Prometheus. regex: its group is the part of each answer that is the value."""
    variable = dashboard.QueryVariable(name).id(name).label(label).datasource(DATASOURCE)
    variable.query({"query": query, "refId": name}).multi(several).include_all(several)
    variable.refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(models.VariableSort.ALPHABETICAL_ASC)
    if several:
        variable.current(models.VariableOption(text="All", value="$__all"))
    if all_value:
        variable.all_value(all_value)
    if regex:
        variable.regex(regex)
    return variable.hide(models.VariableHide.HIDE_VARIABLE) if hidden else variable


def one_of(name, label, values, default):
    options = [models.VariableOption(text=value, value=value, selected=value == default) for value in values]
    current = next(option for option in options if option.text == default)
    variable = dashboard.CustomVariable(name).id(name).label(label)
    return variable.values(",".join(values)).options(options).current(current)


def page(title, uid, about, variables, rows, episodes=(), marked=(), time_from="now-3h", refresh="30s"):
    """The whole dashboard. rows: (title, panels) open, (title, panels, "folded") closed until clicked.

    Episodes are shown in the rows that `marked` names: they would only hide what a drive reports twice a minute.
    """
    board = dashboard.Dashboard(title).uid(uid).description(about).tags(["ssdpulse"]).timezone("browser")
    board.time(time_from, "now").refresh(refresh).tooltip(models.DashboardCursorSync.CROSSHAIR).editable()
    board.link(dashboard.DashboardLink("ssdpulse").type(models.DashboardLinkType.DASHBOARDS).tags(["ssdpulse"])
               .as_dropdown(False).keep_time(True).include_vars(True))
    # Grafana keeps variables by their id; the SDK gives all of them the same one.
    datasource = dashboard.DatasourceVariable("datasource").id("datasource").label("Prometheus").type("prometheus")
    for variable in [datasource, *variables]:
        board.with_variable(variable)
    identity = 0
    identities = {}
    for row_title, panels, *folded in rows:
        identity += 1
        row = dashboard.Row(row_title).id(identity).collapsed(bool(folded))
        if not folded:
            board.with_row(row)
        for panel in panels:
            identity += 1
            (row if folded else board).with_panel(panel.id(identity))
            identities.setdefault(row_title, []).append(identity)
        if folded:
            board.with_row(row)
    shown = sum((identities[row_title] for row_title in marked), [])
    for episode in episodes:
        episode.filter_val = models.AnnotationPanelFilter(exclude=False, ids=shown)
        board.annotation(episode)
    return board
