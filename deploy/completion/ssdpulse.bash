# SPDX-License-Identifier: Apache-2.0
# Completion of ssdpulse(1) for bash. Needs nothing of bash-completion but to be found by it.

_ssdpulse() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} words= IFS=$' \t\n'
  local options='--config --web.listen-address --web.config.file --history.directory --nvme.reader-socket --devices.include --devices.exclude'
  COMPREPLY=()
  case $previous in
    --config | -c | --web.config.file | --cacert | --input)
      mapfile -t COMPREPLY < <(compgen -f -- "$current")
      return ;;
    --history.directory)
      mapfile -t COMPREPLY < <(compgen -d -- "$current")
      return ;;
    --nvme.reader-socket)
      mapfile -t COMPREPLY < <(compgen -f -- "$current")
      return ;;
    --devices.include | --devices.exclude)
      words=$(command ls /sys/block 2>/dev/null) ;;
    --policy) words='greedy greedy_gc_frontier cost_benefit fifo' ;;
    --placement) words='none hints last_lifetime' ;;
    --discards) words='honoured ignored' ;;
    --start) words='full empty' ;;
    --op) words='7 12 28 50 7,12,28,50' ;;
    --size | --page-size | --sample | --seed | --window) ;;
    --log.level) words='debug info warning error' ;;
    --web.listen-address | --address) words='127.0.0.1:10936 :10936' ;;
    *)
      case ${COMP_WORDS[1]} in
        "$current")
          if [[ $COMP_CWORD -eq 1 ]]; then
            words='run top why devices metrics simulate check-config print-config --help --version'
          fi
          ;;
        run) words="$options --web.systemd-socket --log.level --help" ;;
        print-config | devices) words="$options --help" ;;
        metrics) words='--json --man --help' ;;
        top) words='--address --cacert --config --json --once --help' ;;
        why) words='--address --at --cacert --config --json --help' ;;
        simulate) words='--input --size --page-size --op --policy --placement --discards --full --sample --seed --start --window --json --help' ;;
        check-config)
          mapfile -t COMPREPLY < <(compgen -f -- "$current")
          words='--help' ;;
      esac ;;
  esac
  mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "$words" -- "$current")
}

complete -o filenames -F _ssdpulse ssdpulse
