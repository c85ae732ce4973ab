# SPDX-License-Identifier: Apache-2.0
"""One case of one alert, and the promtool test that it becomes."""
from dataclasses import dataclass, field

from alerts.series import HOST, Latency

MINUTE, HOUR, DAY = 60, 3600, 86400


@dataclass
class Case:
    """`fires`: ((when, {labels in addition to HOST's and the rule's}, description), ...). At every other time that is
    checked, `silent`, the alert does not fire. A case without `fires` is a healthy one. Times are in seconds."""
    alert: str
    what: str
    series: list
    fires: tuple = ()
    silent: tuple = ()
    step: int = 15
    evaluation: int = 15
    host: dict = field(default_factory=lambda: dict(HOST))

    def has_latencies(self):
        return any(isinstance(series, Latency) for series in self.series)

    def test(self, form, rule, red=None):
        """One promtool test; `rule` is the alert's own rule, for what all its cases share.

        `red`: an expression that is 1 while a panel is red. It must be red exactly when the alert fires.
        """
        times = {}
        for when, labels, description in self.fires:
            times.setdefault(when, []).append({
                "exp_labels": {**self.host, **labels, **rule["labels"]},
                "exp_annotations": {**rule["annotations"], **({"description": description} if description else {})}})
        asked = sorted({*times, *self.silent})
        return {
            "name": f"{self.alert}: {self.what}",
            "interval": f"{self.step}s",
            "input_series": [{"series": name, "values": values}
                             for series in self.series for name, values in series.lines(form)],
            "alert_rule_test": [{"eval_time": f"{when}s", "alertname": self.alert, "exp_alerts": times.get(when, [])}
                                for when in asked],
            "promql_expr_test": [{"eval_time": f"{when}s", "expr": red,
                                  "exp_samples": [{"labels": "{}", "value": int(when in times)}]}
                                 for when in asked if red],
        }
