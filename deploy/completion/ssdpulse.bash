# SPDX-License-Identifier: Apache-2.0
# Completion of ssdpulse(1) for bash. Needs nothing of bash-completion but to be found by it.

_ssdpulse() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} words= IFS=$' \t\n'
  local options='--config --web.listen-address --web.config.file --web.socket --history.directory --nvme.reader-socket --devices.include --devices.exclude'
  COMPREPLY=()
  case $previous in
    --config | -c | --web.config.file | --cacert | --input | --html | --accepted)
      mapfile -t COMPREPLY < <(compgen -f -- "$current")
      return ;;
    --history.directory)
      mapfile -t COMPREPLY < <(compgen -d -- "$current")
      return ;;
    --nvme.reader-socket | --web.socket)
      mapfile -t COMPREPLY < <(compgen -f -- "$current")
      return ;;
    --devices.include | --devices.exclude | --device)
      words=$(command ls /sys/block 2>/dev/null) ;;
    --policy) words='greedy greedy_gc_frontier cost_benefit fifo' ;;
    --placement) words='none hints last_lifetime' ;;
    --discards) words='honoured ignored' ;;
    --start) words='full empty' ;;
    --fail-on) words='worse' ;;
    --change) words='last' ;;
    --op) words='7 12 28 50 7,12,28,50' ;;
    --window) words='24h 7d drive_write' ;;
    --size | --page-size | --sample | --seed | --before | --after | --last | --settle | --width | --min-observation) ;;
    --log.format) words='text json' ;;
    --log.level) words='debug info warning error' ;;
    --web.listen-address | --address) words='127.0.0.1:10936 :10936' ;;
    *)
      case ${COMP_WORDS[1]} in
        "$current")
          if [[ $COMP_CWORD -eq 1 ]]; then
            words='run top why what-if doctor audit history mark report mcp devices metrics simulate check-config print-config --help --version'
          fi
          ;;
        run) words="$options --web.allow-less-protection --web.systemd-socket --log.level --log.format --help" ;;
        print-config) words="$options --commented --schema --man --help" ;;
        devices) words="$options --json --ladder --help" ;;
        metrics) words='--json --man --help' ;;
        top) words='--address --cacert --config --json --once --at --help' ;;
        why) words='--address --at --cacert --config --json --verbose --help' ;;
        audit) words='--accepted --address --all --cacert --config --history.directory --json --markdown --min-observation --rules --verbose --help' ;;
        doctor) words='--address --all --cacert --config --cost --json --verbose --help' ;;
        what-if) words='--address --cacert --config --device --json --op --window --help' ;;
        history) words='--address --backup --by --cacert --check --config --csv --device --file --from --history.directory --json --points --salvage --to --help' ;;
        mark) words='--address --cacert --config --id --json --help' ;;
        report) words='--before --after --change --last --settle --width --all --device --json --markdown --html --fail-on --config --history.directory --help' ;;
        mcp) words='--address --cacert --config --help' ;;
        simulate) words='--input --size --page-size --op --policy --placement --discards --full --sample --seed --start --window --json --help' ;;
        check-config)
          mapfile -t COMPREPLY < <(compgen -f -- "$current")
          words='--help' ;;
      esac ;;
  esac
  mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "$words" -- "$current")
}

complete -o filenames -F _ssdpulse ssdpulse
