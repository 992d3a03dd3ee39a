# kiln check --format sarif: a race that a comment allows, one that none does, a source with errors.
mkdir -p "a dir"
cat >"a dir/k.kiln" <<'K'
kernel k(i64 n, i32 y[n], i32 c[1] = 0) // écrit
    grid(n)
{
    c[0] = 1; // kiln: allow K1301 all write the same
    /* é */ y[program_id(0) / 2] = 1;
}
K
printf 'kernel k(f32 x[4]) grid(1) { x[0:4] = yy; }\n' >bad.kiln
k() { echo "\$ kiln check $*"; "$KILN" check "$@" 2>&1 | sed '/"help"/,/}/s/"text": .*/"text": "..."/'; }
k "a dir/k.kiln" n=4 --format sarif
k bad.kiln --format sarif
k bad.kiln --format xml
