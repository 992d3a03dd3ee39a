# stub.sh - for tests of rules that registers decide: assemblers that say what they are told, and the notes of
# explain with one of them.  Wants KILN; works in the present folder.

tool() { # tool NAME REGISTERS SPILLS
    cat >"$1" <<P
#!/bin/sh
for a; do case \$a in *.ptx) name=\$(sed -n 's/^.visible .entry \([a-z_0-9]*\).*/\1/p' "\$a") ;; esac; done
echo "ptxas info    : Compiling entry function '\$name' for 'sm_90'"
echo "    0 bytes stack frame, $3 bytes spill stores, $3 bytes spill loads"
echo "ptxas info    : Used $2 registers, used 1 barriers, 400 bytes cmem[0]"
P
    chmod +x "$1"
}
tool r28 28 0
tool r32 32 0
tool r168 168 0
tool r255 255 0
tool spill 64 24
k() {
    tool=$1
    shift
    echo "\$ $tool: $*"
    "$KILN" explain "$@" --registers "$PWD/$tool" 2>&1 |
        awk '/note\[K2/ { on = 1 } on || /^  (occupancy|waves)/ || /^notes/' | grep -v '^ *[0-9]* |'
}
