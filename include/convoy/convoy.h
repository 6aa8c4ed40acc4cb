/* convoy/convoy.h: everything but MPI (for a context over ranks include convoy/mpi.h too). */
#ifndef CONVOY_CONVOY_H
#define CONVOY_CONVOY_H

#include <convoy/base.h>
#include <convoy/model.h>
#include <convoy/program.h>
#include <convoy/reducer.h>
#include <convoy/run.h>

#endif
