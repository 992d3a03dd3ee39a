# kiln fmt: what it makes of a source, --check, standard input, errors, files in place.
cat >messy.kiln <<'K'

/* messy.kiln
   * second line */
#pragma kiln 1
#include   <act.kiln>  // activations
f32 half(f32 x){return x*0.5;}
f32 long_one(f32 x, f32 y, f32 z) { f32 first_value = x * y + z; f32 second_value = first_value * first_value; return second_value; }
kernel   k( i64 n,f32 y[ n ],const f32 x[n] , // the arrays
   // the block
   constexpr i64 BLOCK=64 ) grid( cdiv(n,BLOCK) ) tune(BLOCK:64,128;warps:4) {


   i64 i=program_id(0)*BLOCK;   // first
   auto v=load( x[ i : BLOCK ],-inf ) ; // loaded
                                        // and a second line about it


   // about the mask
   auto m=(inside(x[i:BLOCK])&&v>- 1)||!(v<(f32)n) ;
   if(n>0){ y[i:BLOCK]=v; }
   else if(n==0) y[i:BLOCK]=m?0:1;
   // the rest
   else { y[i:BLOCK]=half(v); } // done
   for(i64 j=0;j<n;j++) for(i64 k=0;k<n;++k) if(j==k) y[j]+=x[k]; else y[j]-=x[k];
   do{ i--; }while(i>0);
   while(i<3) // short
     i++;
   f32 t=fma(load(x[program_id(0)*BLOCK:BLOCK],-inf),load(x[program_id(0)*BLOCK+1:BLOCK],-inf),1.0)+sum(v,.axis=0)*max(v);
   f32 a_long_name_for_a_value = y[0] + y[1] * y[2] > 0 ? exp(y[3] - y[4]) * 2 : log(y[5] + y[6]) / 3 - y[7] + y[8];
   y[i]=x[i]?-x[i]:- -x[i]; ;
#pragma unroll
   for(;;){break;}
   #pragma unroll 4
   for(;;)
   {
     break;   /* leave
                 it */

   }
   { i32 c=1<<3; y[c]=(f32)-c; }
   static_assert(sizeof(f32)==4,"a text" "and  another");
   // last

}
//!   test  one   
//! input x = {1,2}
K
"$KILN" fmt - <messy.kiln | tee out.kiln
echo "== stable"
"$KILN" fmt --check out.kiln; echo "rc $?"
echo "== --check names what would change and writes nothing"
cp messy.kiln copy.kiln
"$KILN" fmt --check out.kiln messy.kiln; echo "rc $?"
cmp messy.kiln copy.kiln
echo "== in place, permissions stay, nothing else appears"
chmod 600 messy.kiln
"$KILN" fmt messy.kiln out.kiln; echo "rc $?"
cmp messy.kiln out.kiln
stat -c %a messy.kiln
mkdir d
cp copy.kiln d/real.kiln
ln -s d/real.kiln link.kiln
"$KILN" fmt link.kiln; echo "rc $?"
test -L link.kiln && cmp d/real.kiln out.kiln && rm -r d link.kiln
ls -A | grep -v '^[.]\(out\|err\)$'
echo "== a source that does not parse stays; the others are done"
echo 'kernel k(f32 y[1]) { y[0] = ; }' >bad.kiln
cp bad.kiln copy2
cp copy.kiln again.kiln
"$KILN" fmt bad.kiln again.kiln 2>&1; echo "rc $?"
cmp bad.kiln copy2
cmp again.kiln out.kiln
echo "== what cannot be read or written"
"$KILN" fmt none.kiln 2>&1; echo "rc $?"
"$KILN" fmt 2>&1; echo "rc $?"
# what an include holds does not matter, nor whether it is there
printf '#include "nowhere.kiln"\nf32 f( f32 x ) { return g(x); }' | "$KILN" fmt -; echo "rc $?"
# a byte 0 in a comment is kept
printf '// a\000b\nconstexpr i64 A=1;\n' | "$KILN" fmt - | od -An -c | head -2
