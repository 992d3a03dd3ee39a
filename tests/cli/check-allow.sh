# Comments that allow a finding: at the line, above it, unused ones, in cases, in JSON.
cat >a.kiln <<'K'
kernel a(i64 n, i32 out[2], i32 y[n])
    grid(n)
{
    // kiln: allow K1301 all write the same value
    out[0] = 7;
    out[1] = 8; // kiln: allow K1301, K1302 here too
    // kiln: allow K1601 nothing like this
    y[program_id(0)] = 1;
}
K
cat >cases.kiln <<'K'
kernel c(i64 n, i32 out[1])
    grid(n)
{
    out[0] = 7; // kiln: allow K1301 all write the same value
    // kiln: allow K1607 nowhere
    out[0] = 7; // not allowed: reported where the other is
}
//! test one
//! input n = 1
//! output out = {7}
//! test two
//! input n = 2
//! finding K1301
//! output out = {7}
K
sed '/not allowed/d' cases.kiln >clean.kiln
k() { echo "\$ kiln check $*"; "$KILN" check "$@" 2>&1; echo "rc $?"; }
k a.kiln n=4
k a.kiln n=4 --all
k a.kiln n=4 --device sim
k a.kiln n=4 --format json | grep -E '"(suppressed|errors|warnings|exit|code|status|device)"'
k cases.kiln
sed -i '/finding/d' clean.kiln
k clean.kiln
k clean.kiln --device sim
k clean.kiln:c n=3 --all --device sim
# Codes that cannot be allowed, or read.
cat >wrong.kiln <<'K'
kernel w(i64 n, i32 out[n])
    grid(n)
{
    out[0] = 7; // kiln: allow K13O1 typo
    out[1] = 8; // kiln: allow K1301, k1302 why
    out[2] = 1; // kiln: allow races here
    out[3] = 1; // kiln: allow K9999 K0401 K1505 and more
    out[4] = 1; // kiln: allow K13011
}
//! test one
//! input n = 1
//! finding K1202
K
k wrong.kiln:w n=1
k wrong.kiln
