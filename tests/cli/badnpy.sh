# .npy files that cannot be used: one message each, status 2, no output file.
cat >k.kiln <<'K'
kernel copy(i64 n, f32 y[n], const f32 x[n]) grid(cdiv(n, 4))
{
    i64 i = program_id(0) * 4;
    y[i:4] = x[i:4];
}
K
k() { echo "x=$1"; "$KILN" run k.kiln --device interp "x=$1" -o y=out.npy 2>&1; echo "rc $?"; ls out.npy 2>/dev/null; }
# npy FILE HEADER BYTES-OF-DATA: the header is padded to 118 bytes
npy() { printf '\223NUMPY\001\000\166\000%-117s\n' "$2" >$1; head -c $3 /dev/zero >>$1; }
k missing.npy
k .
: >empty.npy; k empty.npy
echo "not an array, but long enough to be one" >text.npy; k text.npy
printf '\223NUMPY\001\000' >short.npy; k short.npy
printf '\223NUMPY\002\000\377\377\377\377 and so on' >long.npy; k long.npy
printf '\223NUMPY\007\000\004\000 {} ' >version.npy; k version.npy
npy cut.npy "{'descr': '<f4', 'fortran_order': False, 'shape': (10,), }" 39; k cut.npy
npy more.npy "{'descr': '<f4', 'fortran_order': False, 'shape': (10,), }" 41; k more.npy
npy big.npy "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }" 40; k big.npy
npy huge.npy "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }" 40; k huge.npy
npy neg.npy "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }" 40; k neg.npy
npy rank.npy "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }" 4; k rank.npy
npy obj.npy "{'descr': '|O', 'fortran_order': False, 'shape': (10,), }" 80; k obj.npy
npy be.npy "{'descr': '>f4', 'fortran_order': False, 'shape': (10,), }" 40; k be.npy
npy cpl.npy "{'descr': '<c8', 'fortran_order': False, 'shape': (5,), }" 40; k cpl.npy
npy rec.npy "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (10,), }" 40; k rec.npy
npy evil.npy "__import__('os').system('touch evil')" 40; k evil.npy
npy v2.npy "{'descr': '|V2', 'fortran_order': False, 'shape': (10,), }" 20; k v2.npy
npy view.npy "{'descr': '<f4', 'fortran_order': False, 'shape': (10,), }" 40; k view.npy:bf16
# a file that is fine but of the wrong type, and of the wrong rank
npy f8.npy "{'descr': '<f8', 'fortran_order': False, 'shape': (10,), }" 80; k f8.npy
npy r2.npy "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 5), }" 40; k r2.npy
npy good.npy "{'descr': '<f4', 'fortran_order': False, 'shape': (10,), }" 40; k good.npy
