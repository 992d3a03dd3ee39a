# #include: beside the source, from -I, from the library; and what is not there.
mkdir lib src
printf 'auto twice(auto x) { return x + x; }\n' >lib/twice.kiln
printf 'auto thrice(auto x) { return x + x + x; }\n' >src/thrice.kiln
cat >src/k.kiln <<'K'
#include "thrice.kiln"
#include "twice.kiln"
#include <act.kiln>
kernel k(i64 n, f32 y[n], const f32 x[n]) grid(n)
{
    i64 i = program_id(0);
    y[i] = relu(thrice(twice(x[i])));
}
K
"$KILN" run src/k.kiln --device interp 'x={1, -2}' 2>&1; echo "rc $?"
"$KILN" run src/k.kiln --device interp 'x={1, -2}' -I lib 2>&1; echo "rc $?"
"$KILN" run src/k.kiln --device interp 'x={1, -2}' -I nowhere -Ilib 2>&1; echo "rc $?"
