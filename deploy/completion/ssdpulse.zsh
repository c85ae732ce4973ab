#compdef ssdpulse
# SPDX-License-Identifier: Apache-2.0
# Completion of ssdpulse(1) for zsh.

_ssdpulse() {
  local -a commands options asking
  commands=(
    'run:measure and serve metrics'
    'check-config:check a configuration file'
    'print-config:print the effective configuration'
    'devices:list block devices'
    'metrics:list every metric'
    'top:show drives, volumes and tenants in the terminal'
    'why:say which drive is slow, and why'
    'what-if:what a drive would write with more spare flash'
    'doctor:say what is not measured, and why'
    'audit:say what should be changed'
    'history:show the past of a device'
    'mark:note that something was done now'
    'report:compare two windows of the past'
    'mcp:answer an AI assistant'
    'simulate:model the write amplification of a recorded load'
  )
  asking=(
    '(-h --help)'{-h,--help}'[print the options of the command]'
    '--address[where the daemon answers]:address'
    '--cacert[certificates to trust]:file:_files'
    '(-c --config)'{-c,--config}'[configuration file of the daemon]:file:_files'
    '--json[print the answer as JSON]'
  )
  options=(
    '(-h --help)'{-h,--help}'[print the options of the command]'
    '(-c --config)'{-c,--config}'[configuration file]:file:_files'
    '*--web.listen-address[where to serve metrics]:address'
    '--web.config.file[TLS and basic authentication]:file:_files'
    '--history.directory[directory for the history]:directory:_files -/'
    '--web.socket[unix socket for the commands of this host]:socket:_files'
    '--nvme.reader-socket[socket of a log reader that runs as a service]:socket:_files'
    '*--devices.include[pattern of block devices to measure]:pattern:_files -W /sys/block'
    '*--devices.exclude[pattern of block devices to leave out]:pattern:_files -W /sys/block'
  )
  if ((CURRENT == 2)); then
    _describe command commands
    _arguments '(-h --help)'{-h,--help}'[print the options]' '--version[print the version]'
    return
  fi
  local command=$words[2]
  shift words
  ((CURRENT--))
  case $command in
    run) _arguments $options '--web.allow-less-protection[start with less protection of the pages than in the last run]' '--web.systemd-socket[serve on the sockets that systemd passes]' '--log.level[what is logged]:level:(debug info warning error)' '--log.format[form of the log]:format:(text json)' ;;
    print-config) _arguments $options '--commented[every key at its default, explained]' '--schema[the JSON schema]' '--man[as a manual page]' ;;
    devices) _arguments $options '(--ladder)--json[print JSON]' '(--json)--ladder[where writes are amplified]:seconds' ;;
    metrics) _arguments '(-h --help)'{-h,--help}'[print the options]' '--json[as JSON]' '--man[as a manual page]' ;;
    top) _arguments $asking '--once[print one screen as text]' '--at[a time in the past]:time:' ;;
    why) _arguments $asking '--at[of a time past]:time' '(-v --verbose)'{-v,--verbose}'[also show the evidence]' ;;
    doctor) _arguments $asking '--all[also show what is fine]' '--cost[what each part of the observation costs]' '(-v --verbose)'{-v,--verbose}'[show everything that is known about each finding]' ;;
    audit)
      _arguments $asking '--all[also show what is fine]' '(-v --verbose)'{-v,--verbose}'[show everything that is known about each finding]' '--markdown[print Markdown]' \
        '--rules[list the rules]' '--accepted[findings that were accepted]:file:_files' '--min-observation[hours before anything is advised]:hours' \
        '--history.directory[directory of the history]:directory:_files -/' ;;
    what-if)
      _arguments $asking '--device[a disk]:device:_files -W /sys/block' '--op[over-provisioning]:percent' \
        '--window[over which time]:window:(24h 7d drive_write)' ;;
    history)
      _arguments $asking '--device[name, serial number or WWID]:device:_files -W /sys/block' '--from[since when]:time' '--to[until when]:time' \
        '--points[at most this many lines]:number' '--by[what each tenant did]:what:(tenant)' '(--json)--csv[print CSV]' \
        '(--backup)--check[check the whole file]' '(--check)--backup[copy the history to this file]:file:_files' '(--check)--salvage[write what is readable to this new file]:file:_files' '--file[another history file]:file:_files' '--history.directory[where it is, without a daemon]:directory:_files -/' ;;
    mark) _arguments $asking '--id[sent again with it, it is kept once]:an ID' '1:what was done' ;;
    report)
      _arguments '(-h --help)'{-h,--help}'[print the options]' '--before[window or duration]:window' '--after[window or duration]:window' \
        '--change[windows on both sides of a time]:time:(last)' '--last[one window that ends now]:duration' \
        '--settle[left out after the change]:duration' '--width[the most of either side]:duration' '--device[name or serial number]:device' \
        '(--markdown --all)--json[print JSON]' '(--json)--markdown[print Markdown]' '(--json)--all[show all rows of all disks]' '--html[write one page]:file:_files' \
        '--fail-on[exit with 1]:verdict:(worse)' '(-c --config)'{-c,--config}'[configuration file of the daemon]:file:_files' \
        '--history.directory[directory of the history]:directory:_files -/' '*::command to run: _normal' ;;
    mcp)
      _arguments '(-h --help)'{-h,--help}'[print the options]' '--address[where the daemon answers]:address' \
        '--cacert[certificates to trust]:file:_files' '(-c --config)'{-c,--config}'[configuration file of the daemon]:file:_files' ;;
    simulate)
      _arguments '(-h --help)'{-h,--help}'[print the options]' '--input[recorded load]:file:_files' '--size[of the drive]:bytes' \
        '--page-size[bytes that the drive maps as one]:bytes' '--op[over-provisioning]:percent' \
        '--policy[which block is collected]:policy:(greedy greedy_gc_frontier cost_benefit fifo)' \
        '--placement[what is kept apart]:placement:(none hints last_lifetime)' \
        '--discards[what the drive makes of them]:discards:(honoured ignored)' '(--sample)--full[follow every page]' \
        '(--full)--sample[pages that are followed]:pages' '--seed[which pages are followed]:number' \
        '--start[what the drive holds at first]:start:(full empty)' '--window[what counts, in percent]:window' \
        '--json[print JSON]' ;;
    check-config) _arguments '(-h --help)'{-h,--help}'[print the options]' '1:configuration file:_files' ;;
  esac
}

_ssdpulse "$@"
