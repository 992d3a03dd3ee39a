# kiln test: what passes, what fails and how it says so.  Interpreter only.
cat >good.kiln <<'K'
kernel add(i64 n, type T = f32, T z[n], const T x[n], const T y[n], constexpr i64 B = 4)
    grid(cdiv(n, B))
{
    i64 i = program_id(0) * B;
    z[i:B] = x[i:B] + y[i:B];
}
kernel slow(i64 n, type T = f32, f64 z[n], const T x[n], const T y[n]) grid(n)
{
    i64 i = program_id(0);
    z[i] = (f64)x[i] + (f64)y[i];
}
//! test exact
//! input x = {1, 2, 3,
//!            4, 5}
//! input y = {10, 20, 30, 40, 50}
//! output z = {11, 22, 33, 44, 55}
//! test another kernel, types, constants
//! type T = bf16
//! const B = 2
//! input x = randn(37,1)
//! input y = randn(37,2)
//! output z ~ reference slow tol 0.5ulp
//! test in place
//! input x = {1, 2}
//! input y = {1, 2}
//! alias z = x
//! output z = {2, 4}
//! output z ~ reference slow
//! test an error
//! input x = {1, 2}
//! input y = {1, 2, 3}
//! error K0707
K
cat >bad.kiln <<'K'
kernel id(i64 n, f32 y[n], const f32 x[n]) grid(cdiv(n, 4))
{
    i64 i = program_id(0) * 4;
    y[i:4] = x[i:4];
}
kernel out(i64 n, f32 y[], const f32 x[n]) grid(cdiv(n, 4))
{
    i64 i = program_id(0) * 4;
    y[i:4] = x[i:4];
}
//! test a wrong value
//! input x = {1, 2, 3}
//! output y = {1, 2, 4}
//! test beyond the tolerance
//! input x = {1, 2, 3}
//! output y ~ {1, 2, 3.00001} tol 2ulp
//! test a wrong shape
//! input x = {1, 2, 3}
//! output y = {1, 2}
//! test no such output
//! input x = {1, 2, 3}
//! output z = {1, 2}
//! test an error that does not come
//! input x = {1, 2, 3}
//! error K0707
//! test an error that comes
//! input n = 3
//! test a finding
//! kernel out
//! input x = {1, 2, 3}
//! input y = zeros(3)
//! test the same, expected
//! kernel out
//! input x = {1, 2, 3}
//! input y = zeros(3)
//! finding K1203
//! test no such kernel
//! kernel nothing
//! test no such parameter
//! input w = 3
//! test a value that does not fit
//! input x = {1, 2}
//! output y = {{1}, {2, 3}}
//! test the reference has no value for what it reads
//! kernel two
//! input x = {1, 2}
//! output s ~ reference two_reference tol 0
kernel two(i64 n, i64 m = 1, f32 y[n], optional f32 s[m], const f32 x[n]) grid(1)
{ y[0:2] = x[0:2]; if (given(s)) s[0] = 1; }
kernel two_reference(i64 n, i64 m = 1, f32 y[n], optional f32 s[m], const f32 x[n]) grid(1)
{ y[0:2] = x[0:2]; if (given(s)) s[0] += 1; }
K
printf '//! test it does not compile\n//! error K0201\nkernel k(f32 x[4]) grid(1) { x[0:4] = y; }\n' >err.kiln
printf 'kernel k(f32 x[4]) grid(1) { x[0:4] = y; }\n' >broken.kiln
printf '//! tset x\nkernel k(f32 x[4]) grid(1) { x[0:4] = 1; }\n' >typo.kiln
printf 'kernel k(f32 x[4]) grid(1) { x[0:4] = 1; }\n' >none.kiln
mkdir -p dir/sub; cp good.kiln dir/b.kiln; cp err.kiln dir/sub/a.kiln; echo x >dir/note.txt
k() { echo "\$ kiln test $*"; "$KILN" test --device interp "$@" 2>&1; echo "rc $?"; }
k -v good.kiln
k bad.kiln
k err.kiln
k broken.kiln
k typo.kiln
k none.kiln
k -v dir
k dir bad.kiln
k good.kiln nowhere.kiln
