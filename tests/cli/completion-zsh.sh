# Completion in zsh, in a terminal of its own: each line gets a tab, and then is printed.
command -v zsh >/dev/null || { echo "no zsh" >&2; exit 77; }
zsh -f -c 'zmodload zsh/zpty' 2>/dev/null || { echo "zsh has no zpty" >&2; exit 77; }
mkdir bin fun
ln -s "$KILN" bin/kiln
"$KILN" completion zsh >fun/_kiln
cp "$SRC/kernels/softmax.kiln" one.kiln
cat >ask <<'B'
zmodload zsh/zpty
zpty z "env TERM=dumb zsh -f -i"
zpty -w z 'fpath=('$PWD'/fun $fpath); autoload -U compinit; compinit -u -D; setopt no_auto_list no_beep; show() { print -r -- "[$BUFFER]" >>'$PWD'/shown; BUFFER= }; zle -N show; bindkey "^G" show; bindkey "^I" complete-word; print READ""Y'
zpty -r z got '*READY*'
for line in "$@"; do
    zpty -n -w z "$line"$'\t\a'
done
for ((i = 0; i < 200; i++)); do
    [[ -f shown && $(wc -l <shown) -ge $# ]] && break
    sleep 0.1
done
zpty -d z
B
PATH=$PWD/bin:$PATH zsh -f ask "kiln ch" "kiln run --devi" "kiln run --device=cu" "kiln emit --stage=p" \
    "kiln emit one.kiln --arch=sm_12" "kiln run one.kiln:softmax_o" "kiln run one.kiln:softmax BL" \
    "kiln run one.kiln:softmax x=on" "kiln completion z" "kiln help doc"
cat shown
