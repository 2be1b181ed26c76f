#ifndef KOTA_SANDSCENE_BAKE_H
#define KOTA_SANDSCENE_BAKE_H

/* kota-sand bake [SIDE [FRACTION [SEED]]]: prints a packing as the asset that is embedded. */
int bake_command(int argc, char **argv);

#endif
