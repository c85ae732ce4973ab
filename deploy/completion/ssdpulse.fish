# SPDX-License-Identifier: Apache-2.0
# Completion of ssdpulse(1) for fish.

complete -c ssdpulse -f
complete -c ssdpulse -s h -l help -d 'Print the options'

set -l commands run check-config print-config devices metrics top why
complete -c ssdpulse -n "not __fish_seen_subcommand_from $commands" -l version -d 'Print the version'
complete -c ssdpulse -n "not __fish_seen_subcommand_from $commands" -a run -d 'Measure and serve metrics'
complete -c ssdpulse -n "not __fish_seen_subcommand_from $commands" -a check-config -d 'Check a configuration file'
complete -c ssdpulse -n "not __fish_seen_subcommand_from $commands" -a print-config -d 'Print the effective configuration'
complete -c ssdpulse -n "not __fish_seen_subcommand_from $commands" -a devices -d 'List block devices'
complete -c ssdpulse -n "not __fish_seen_subcommand_from $commands" -a metrics -d 'List every metric'
complete -c ssdpulse -n "not __fish_seen_subcommand_from $commands" -a top -d 'Show the drives in the terminal'
complete -c ssdpulse -n "not __fish_seen_subcommand_from $commands" -a why -d 'Which drive is slow, and why'
complete -c ssdpulse -n '__fish_seen_subcommand_from check-config' -F

complete -c ssdpulse -n '__fish_seen_subcommand_from top why' -l address -x -d 'Where the daemon answers'
complete -c ssdpulse -n '__fish_seen_subcommand_from top why' -l cacert -r -F -d 'Certificates to trust'
complete -c ssdpulse -n '__fish_seen_subcommand_from top why' -s c -l config -r -F -d 'Configuration file of the daemon'
complete -c ssdpulse -n '__fish_seen_subcommand_from top why' -l json -d 'Print the answer as JSON'
complete -c ssdpulse -n '__fish_seen_subcommand_from top' -l once -d 'Print one screen as text'
complete -c ssdpulse -n '__fish_seen_subcommand_from why' -l at -x -d 'Of a time past'

set -l configured '__fish_seen_subcommand_from run print-config devices'
complete -c ssdpulse -n $configured -s c -l config -r -F -d 'Configuration file'
complete -c ssdpulse -n $configured -l web.listen-address -x -d 'Where to serve metrics'
complete -c ssdpulse -n $configured -l web.config.file -r -F -d 'TLS and basic authentication'
complete -c ssdpulse -n $configured -l history.directory -x -a '(__fish_complete_directories)' -d 'Directory for the history'
complete -c ssdpulse -n $configured -l nvme.reader-socket -r -F -d 'Socket of a log reader that runs as a service'
complete -c ssdpulse -n $configured -l devices.include -x -a '(command ls /sys/block)' -d 'Block devices to measure'
complete -c ssdpulse -n $configured -l devices.exclude -x -a '(command ls /sys/block)' -d 'Block devices to leave out'
complete -c ssdpulse -n '__fish_seen_subcommand_from run' -l web.systemd-socket -d 'Serve on the sockets that systemd passes'
complete -c ssdpulse -n '__fish_seen_subcommand_from run' -l log.level -x -a 'debug info warning error' -d 'What is logged'
complete -c ssdpulse -n '__fish_seen_subcommand_from metrics' -l json -d 'As JSON'
complete -c ssdpulse -n '__fish_seen_subcommand_from metrics' -l man -d 'As a manual page'
