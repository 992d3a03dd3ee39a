# Without a C compiler: it says so, interprets, and doctor exits with 3.
cat >k.kiln <<'K'
kernel fill(f32 y[3]) grid(1) { y[0:3] = 7; }
//! test one
//! output y = {7, 7, 7}
K
export KILN_CC=/nowhere/cc
"$KILN" run k.kiln; echo "rc $?"
"$KILN" run k.kiln --device interp; echo "rc $?"
"$KILN" run k.kiln --device cpu; echo "rc $?"
"$KILN" test k.kiln; echo "rc $?"
"$KILN" test k.kiln --device interp; echo "rc $?"
"$KILN" doctor | sed -E 's/^(kiln|cpu |gpu) .*/\1/; s/^cache .*/cache/'
"$KILN" doctor >/dev/null; echo "rc $?"
KILN_CC= "$KILN" run k.kiln; echo "rc $?"
KILN_CC= "$KILN" run k.kiln --device interp; echo "rc $?"
