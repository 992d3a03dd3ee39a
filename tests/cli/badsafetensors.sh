# .safetensors files that cannot be used: one message each, status 2, no output file.
cat >k.kiln <<'K'
kernel copy(i64 n, f32 y[n], const f32 x[n]) grid(cdiv(n, 4))
{
    i64 i = program_id(0) * 4;
    y[i:4] = x[i:4];
}
K
k() { echo "x=$1"; "$KILN" run k.kiln --device interp "x=$1" -o y=out.npy 2>&1; echo "rc $?"; ls out.npy 2>/dev/null; }
# st FILE HEADER BYTES-OF-DATA
st() {
    n=${#2}
    { printf "\\$(printf %03o $((n % 256)))\\$(printf %03o $((n / 256)))"; head -c 6 /dev/zero; printf %s "$2"; head -c $3 /dev/zero; } >$1.safetensors
    k $1.safetensors
}
t() { printf '"%s":{"dtype":"%s","shape":%s,"data_offsets":[%s]}' "$1" "$2" "$3" "$4"; }
k missing.safetensors
: >empty.safetensors; k empty.safetensors
printf 'short' >short.safetensors; k short.safetensors
echo "this is a text and no array" >text.safetensors; k text.safetensors
printf '\377\377\377\377\377\377\377\377{}' >huge.safetensors; k huge.safetensors
printf '\377\0\0\0\0\0\0\0{}' >cut.safetensors; k cut.safetensors
st json '{"x":{' 0
st list '[1, 2]' 0
st none '{}' 0
st trail "{$(t x F32 '[2]' 0,8)} x" 8
st deep "{\"x\":$(printf '[%.0s' $(seq 3000))" 0
st number '{"x":7}' 0
st lacks '{"x":{"dtype":"F32","shape":[2]}}' 8
st kind '{"x":{"dtype":3,"shape":[2],"data_offsets":[0,8]}}' 8
st more '{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1}}' 8
st twice "{$(t x F32 '[2]' 0,8),$(t x F32 '[2]' 8,16)}" 16
st beyond "{$(t x F32 '[4]' 0,16)}" 8
st back "{$(t x F32 '[2]' 8,0)}" 8
st negative "{$(t x F32 '[2]' -8,0)}" 8
st real "{$(t x F32 '[2]' 0,8.0)}" 8
st big "{$(t x F32 '[2]' 0,99999999999999999999)}" 8
st overlap "{$(t x F32 '[2]' 0,8),$(t z F32 '[2]' 4,12)}" 12
st hole "{$(t x F32 '[2]' 0,8),$(t z F32 '[1]' 12,16)}" 16
st long "{$(t x F32 '[2]' 0,8)}" 9
st size "{$(t x F32 '[3]' 0,8)}" 8
st extent "{$(t x F32 '[-2]' 0,8)}" 8
st overflow "{$(t x F32 '[4294967296,4294967296,4]' 0,8)}" 8
st shape "{$(t x F32 '["2"]' 0,8)}" 8
st type "{$(t x C64 '[1]' 0,8)}" 8
st rank "{$(t x F32 '[1,1,1,1,1,1,1,1,1]' 0,4)}" 4
st meta '{"__metadata__":{"a":1}}' 0
st names "{$(t a F32 '[1]' 0,4),$(t b F32 '[1]' 4,8)}" 8
k names.safetensors:c
st control "{\"x\\u001b[31m\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,9]}}" 9
st wrong "{$(t x F64 '[1]' 0,8)}" 8
k "names.safetensors:a"
rm out.npy
