# Completion in bash: commands, options (exactly those of --help), values, kernels, parameters.
command -v bash >/dev/null || { echo "no bash" >&2; exit 77; }
"$KILN" completion bash >kiln.bash
cp "$SRC/kernels/softmax.kiln" one.kiln
mkdir sub
cat >ask <<'B'
. ./kiln.bash
kiln() { "$KILN" "$@"; }
ask() { # LINE: what is offered at its end
    COMP_LINE=$1 COMP_POINT=${#1} COMPREPLY=()
    _kiln 2>&1
    printf '%s\n' "$1 -> ${COMPREPLY[*]}"
}
if [[ $1 ]]; then
    ask "$1"
    exit
fi
ask "kiln ch"
ask "kiln run --device "
ask "kiln run --device=c"
ask "kiln emit --stage p"
ask "kiln emit one.kiln --arch sm_12"
ask "kiln run on"
ask "kiln run one.kiln:softmax_c"
ask "kiln run one.kiln:softmax B"
ask "kiln run --threads 2 one.kiln:softmax c"
ask "kiln run one.kiln:softmax x=on"
ask "kiln run --threads "
ask "kiln run -I s"
ask "kiln help doc"
ask "kiln completion "
ask "kiln run no.kiln:x"
B
bash --norc ask
for c in $("$KILN" --help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
    "$KILN" $c --help | sed -n 's/^  \(-.,\|   \) \(--[a-z-]*\).*/\2/p' | sort >help
    bash --norc ask "kiln $c --" | sed 's/.*-> //' | tr ' ' '\n' | sort | diff help - || echo "kiln $c"
done
"$KILN" completion tcsh
echo "status $?"
