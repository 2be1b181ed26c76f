/*
 * Trigonometric and hyperbolic functions with the same bits on every machine: only + - * / and
 * exact functions of libm. Two C libraries differ in the last digit of theirs; a copy of the ground
 * in another process or in a browser must not.
 */
#ifndef KOTA_TERRAIN_TRIG_H
#define KOTA_TERRAIN_TRIG_H

/*
 * Of x in radians, within one unit in the last place; the tangent within two. NaN for what is not
 * finite. Beyond 1.6e6 the turns that are left out are those of 2 pi as a double.
 */
double trig_sin(double x);
double trig_cos(double x);
double trig_tan(double x);

/* As atan2 of C, with its zeros and infinities, within one unit in the last place. */
double trig_atan2(double y, double x);

/* Within two units in the last place. */
double trig_sinh(double x);
double trig_cosh(double x);
double trig_asinh(double x);
double trig_atanh(double x); /* of |x| < 1 */

#endif
