#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Do the manual pages and the completions have all that the binary has and nothing else, and are they well formed?

They are compared with the binary's own --help and messages, its list of metrics, and the schema of the configuration.
"""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(os.environ["SSDPULSE_SOURCE"])
BINARY = os.environ["SSDPULSE_BINARY"]
STATE = Path(os.environ["SSDPULSE_TEST_STATE"])
DEPLOY = SOURCE / "deploy"
LEVELS = ("debug", "info", "warning", "error")
failures = []


def expect(true, what):
    print(("ok   " if true else "FAIL: ") + what)
    if not true:
        failures.append(what)


def output(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def options_of(*command):
    """Long options in its --help."""
    return set(re.findall(r"^  (?:-\w,)?(--[\w.-]+)", output(BINARY, *command, "--help"), re.M))


def commands():
    block = output(BINARY, "--help").split("Subcommands:\n")[1].split("\n\n")[0]
    return re.findall(r"^  ([\w-]+)", block, re.M)


def plain(page):
    """As a reader sees it."""
    return re.sub(".\x08", "", output("mandoc", "-T", "utf8", "-O", "width=200", str(page)))


def keys(schema, definitions, path=""):
    """(key, default) of each."""
    for name, value in schema.get("properties", {}).items():
        if "properties" in value:
            yield from keys(value, definitions, f"{path}{name}.")
        else:
            yield path + name, value["default"]


def bash_offers(*words):
    """What a user who presses TAB after these words gets."""
    return set(output("bash", "-c", 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _ssdpulse; '
                      r'printf "%s\n" "${COMPREPLY[@]}"', "bash", str(DEPLOY / "completion/ssdpulse.bash"), "ssdpulse",
                      *words).split())


def manual(by_command):
    page = plain(DEPLOY / "man/ssdpulse.1")
    every = set().union(*by_command.values())
    named = set(re.findall(r"--[a-z][\w.-]*[a-z]", page))
    expect(named == every, f"ssdpulse(1) has every option, and no other: {sorted(named ^ every)}")
    synopsis = page.split("DESCRIPTION")[0]
    for command in filter(None, by_command):
        expect(re.search(rf"ssdpulse {command}\b", synopsis), f"ssdpulse(1) has {command} in its synopsis")
        expect(re.search(rf"^ +{command}( \[?file\]?)?(\n|  )", page, re.M), f"ssdpulse(1) explains {command}")
    statuses = dict(re.findall(r"(\d) ([a-z][^;.]*[a-z])", output(BINARY, "--help").split("Exit status:")[1].replace("\n", " ")))
    for status, words in statuses.items():
        expect(re.search(rf"^ +{status} +.*{words.split()[-1]}", page, re.M), f"ssdpulse(1) has exit status {status}")


def configuration():
    page = plain(DEPLOY / "man/ssdpulse.yaml.5").split("\nFILES\n")[0].split("\nDESCRIPTION\n")[1]
    schema = json.loads((DEPLOY / "config/schema.json").read_text())
    wanted = dict(keys(schema, schema["$defs"]))
    entries = {entry.split()[0]: entry for entry in re.split(r"\n(?=     [a-z_]+\.[a-z_]+(?: |\n))", page)[1:]}
    entries = {key.strip(): entry for key, entry in entries.items()}
    expect(set(entries) == set(wanted), f"ssdpulse.yaml(5) has every key, and no other: {sorted(set(entries) ^ set(wanted))}")
    for key, default in wanted.items():
        words = default if isinstance(default, str) and default else json.dumps(default)
        found = re.search(r"Default:\s+(\S.*)", entries.get(key, ""))
        expect(found and found[1].strip() == words, f"ssdpulse.yaml(5) has the default of {key}: {words}")
    restart = {f"{group}.{key}" for group, members in schema["properties"].items()
               for key, value in members["properties"].items() if re.search("needs a restart", value["description"])}
    marked = {key for key, entry in entries.items() if "restart" in entry}
    expect(restart == marked, f"ssdpulse.yaml(5) says which keys take a restart: {sorted(restart ^ marked)}")


def printed_configuration():
    """The binary makes them; a unit test rewrites the files from the same table of keys."""
    for option, file in (("commented", "config/ssdpulse.yaml"), ("schema", "config/schema.json"), ("man", "man/ssdpulse.yaml.5")):
        expect(output(BINARY, "print-config", f"--{option}") == (DEPLOY / file).read_text(),
               f"deploy/{file} is what ssdpulse print-config --{option} prints")


def web_file():
    """A file with an unknown key in each section: the messages name all the valid ones."""
    (STATE / "web.yaml").write_text("x: 1\ntls_server_config: {x: 1}\nhttp_server_config: {x: 1, headers: {x: 1}}\n")
    (STATE / "ssdpulse.yaml").write_text(f"web: {{config_file: {STATE}/web.yaml}}\n")
    done = subprocess.run([BINARY, "check-config", STATE / "ssdpulse.yaml"], capture_output=True, text=True, check=False)
    wanted = {key for names in re.findall(r"expected one of (.*)", done.stderr) for key in names.split(", ")}
    page = (DEPLOY / "man/ssdpulse-web.5").read_text()
    named = set(re.findall(r"[\w-]+", " ".join(re.findall(r"^\.(?:It Cm|Cm|Ss) (.*)", page, re.M))))
    expect(len(wanted) > 15 and wanted <= named, f"ssdpulse-web(5) has every key: {sorted(wanted - named)}")


def metrics_page():
    """Makes the page and returns its path."""
    page = STATE / "ssdpulse-metrics.7"
    page.write_text(output(BINARY, "metrics", "--man"))
    names = [metric["name"] for metric in json.loads(output(BINARY, "metrics", "--json"))["metrics"]]
    for where, text in (("ssdpulse-metrics(7)", plain(page)), ("ssdpulse metrics", output(BINARY, "metrics"))):
        found = re.findall(r"^ *((?:ssdpulse|process)_\w+)(?= *\(|$)", text, re.M)
        expect(found == names, f"{where} has the {len(names)} metrics of ssdpulse metrics --json")
    return page


def well_formed(metrics):
    for page in (*sorted((DEPLOY / "man").iterdir()), metrics):
        lint = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", str(page)], capture_output=True, text=True, check=False)
        expect(lint.returncode == 0 and not lint.stdout, f"mandoc has nothing against {page.name}: {lint.stdout.strip()}")
        man = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", str(page)], capture_output=True, text=True,
                             check=False, env={**os.environ, "LC_ALL": "C.UTF-8", "MANROFFSEQ": "", "MANWIDTH": "80"})
        expect(man.returncode == 0 and not man.stderr, f"man has nothing against {page.name}: {man.stderr.strip()}")


def completions(by_command):
    offered = bash_offers("")
    expect(offered >= set(by_command) - {""}, f"bash offers all commands: {sorted(offered)}")
    for command, options in by_command.items():
        if command:
            offered = bash_offers(command, "--")
            expect(offered == options, f"bash offers the options of {command}: {sorted(offered ^ options)}")
    expect(bash_offers("run", "--log.level", "") == set(LEVELS), "bash offers the levels of the log")
    expect(bash_offers("ru") == {"run"}, "bash completes what was begun")
    every = set().union(*by_command.values())
    zsh = (DEPLOY / "completion/ssdpulse.zsh").read_text()
    fish = (DEPLOY / "completion/ssdpulse.fish").read_text()
    for name, found in (("zsh", set(re.findall(r"--[a-z][\w.-]*", zsh))),
                        ("fish", {f"--{word}" for word in re.findall(r"-l ([\w.-]+)", fish) if word != "commands"
                                  and word != "configured"})):
        expect(found == every, f"{name} offers every option, and no other: {sorted(found ^ every)}")
    astray = re.findall(r";;\n(?! +(?:[\w-]+(?: \| [\w-]+)*\)|esac))(.*)", zsh)
    expect(not astray, f"each branch of zsh's is a command's: {astray}")
    for command in filter(None, by_command):
        expect(re.search(rf"'{command}:", zsh), f"zsh offers {command}")
        expect(re.search(rf" -a {command} ", fish), f"fish offers {command}")


def main():
    by_command = {"": options_of(), **{command: options_of(command) for command in commands()}}
    manual(by_command)
    configuration()
    printed_configuration()
    web_file()
    well_formed(metrics_page())
    completions(by_command)
    if failures:
        sys.exit(f"FAIL: {len(failures)} of these do not hold; the first: {failures[0]}")


main()
