# SPDX-License-Identifier: Apache-2.0
# Completion of ssdpulse(1) for fish.

complete -c ssdpulse -f
complete -c ssdpulse -s h -l help -d 'Print the options'

set -l commands run check-config print-config devices metrics top why simulate
complete -c ssdpulse -n "not __fish_seen_subcommand_from $commands" -l version -d 'Print the version'
complete -c ssdpulse -n "not __fish_seen_subcommand_from $commands" -a run -d 'Measure and serve metrics'
complete -c ssdpulse -n "not __fish_seen_subcommand_from $commands" -a check-config -d 'Check a configuration file'
complete -c ssdpulse -n "not __fish_seen_subcommand_from $commands" -a print-config -d 'Print the effective configuration'
complete -c ssdpulse -n "not __fish_seen_subcommand_from $commands" -a devices -d 'List block devices'
complete -c ssdpulse -n "not __fish_seen_subcommand_from $commands" -a metrics -d 'List every metric'
complete -c ssdpulse -n "not __fish_seen_subcommand_from $commands" -a top -d 'Show the drives in the terminal'
complete -c ssdpulse -n "not __fish_seen_subcommand_from $commands" -a why -d 'Which drive is slow, and why'
complete -c ssdpulse -n "not __fish_seen_subcommand_from $commands" -a simulate -d 'Model the write amplification of a recorded load'
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

complete -c ssdpulse -n '__fish_seen_subcommand_from simulate' -l input -r -F -d 'Recorded load'
complete -c ssdpulse -n '__fish_seen_subcommand_from simulate' -l size -x -d 'Size of the drive'
complete -c ssdpulse -n '__fish_seen_subcommand_from simulate' -l page-size -x -d 'Bytes that the drive maps as one'
complete -c ssdpulse -n '__fish_seen_subcommand_from simulate' -l op -x -a '7 12 28 50' -d 'Over-provisioning in percent'
complete -c ssdpulse -n '__fish_seen_subcommand_from simulate' -l policy -x -a 'greedy greedy_gc_frontier cost_benefit fifo' -d 'Which block is collected'
complete -c ssdpulse -n '__fish_seen_subcommand_from simulate' -l placement -x -a 'none hints last_lifetime' -d 'What is kept apart'
complete -c ssdpulse -n '__fish_seen_subcommand_from simulate' -l discards -x -a 'honoured ignored' -d 'What the drive makes of discards'
complete -c ssdpulse -n '__fish_seen_subcommand_from simulate' -l full -d 'Follow every page'
complete -c ssdpulse -n '__fish_seen_subcommand_from simulate' -l sample -x -d 'Pages that are followed'
complete -c ssdpulse -n '__fish_seen_subcommand_from simulate' -l seed -x -d 'Which pages are followed'
complete -c ssdpulse -n '__fish_seen_subcommand_from simulate' -l start -x -a 'full empty' -d 'What the drive holds at first'
complete -c ssdpulse -n '__fish_seen_subcommand_from simulate' -l window -x -d 'What counts, in percent'
complete -c ssdpulse -n '__fish_seen_subcommand_from simulate' -l json -d 'Print JSON'
