/*
 * data_hdf5_serve.h: the loop of the HDF5 reader process: see data_hdf5_serve.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_HDF5_SERVE_H
#define CVY_DATA_HDF5_SERVE_H

/* Serves requests from a socket until it closes; data are in the memory of the descriptor `area`. build: of the process
 * that asks. Returns the exit code of the program. */
int cvy_h5_serve(int socket, int area, const char *build);

#endif
