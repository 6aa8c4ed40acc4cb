// SPDX-License-Identifier: BSD-3-Clause
//
// caffe_steps.cpp: trains a network with Caffe itself, in double precision, for scripts/check_caffe_solver.py.
//
//     caffe_steps SOLVER FIRST.caffemodel LAST.caffemodel STEPS X LABELS BATCH ELEMS SAMPLES SNAPSHOT PREFIX
//
// X and LABELS are files of doubles, SAMPLES x ELEMS and SAMPLES. The network reads them from an Input layer with the
// tops data and label, in their order, again from the beginning after the last one. FIRST gets the first weights, LAST
// those after STEPS steps. After step SNAPSHOT (0: never) the state is written to PREFIX_iter_SNAPSHOT.solverstate.
#include <caffe/caffe.hpp>
#include <caffe/util/io.hpp>
#include <caffe/util/upgrade_proto.hpp>

#include <cstdio>
#include <cstdlib>
#include <vector>

static std::vector<double> read_all(const char *path, size_t count)
{
    std::vector<double> values(count);
    FILE *file = fopen(path, "rb");
    if (!file || fread(values.data(), sizeof(double), count, file) != count) {
        fprintf(stderr, "%s: cannot be read\n", path);
        exit(1);
    }
    fclose(file);
    return values;
}

static void write_weights(caffe::Net<double> &net, const char *path)
{
    caffe::NetParameter weights;
    net.ToProto(&weights);
    caffe::WriteProtoToBinaryFile(weights, path);
}

int main(int argc, char **argv)
{
    if (argc != 12)
        return 2;
    const int steps = atoi(argv[4]), batch = atoi(argv[7]), elems = atoi(argv[8]), samples = atoi(argv[9]),
              snapshot = atoi(argv[10]);
    const std::vector<double> x = read_all(argv[5], (size_t)samples * elems), label = read_all(argv[6], samples);
    caffe::SolverParameter opts;
    google::InitGoogleLogging(argv[0]);
    FLAGS_minloglevel = 2;
    caffe::ReadSolverParamsFromTextFileOrDie(argv[1], &opts);
    opts.set_solver_mode(caffe::SolverParameter_SolverMode_CPU);
    opts.set_snapshot_prefix(argv[11]);
    caffe::Caffe::set_mode(caffe::Caffe::CPU);
    caffe::Caffe::set_random_seed(7);
    boost::shared_ptr<caffe::Solver<double>> solver(caffe::SolverRegistry<double>::CreateSolver(opts));
    caffe::Net<double> &net = *solver->net();
    write_weights(net, argv[2]);
    for (int step = 0; step < steps; step++) {
        double *to = net.blob_by_name("data")->mutable_cpu_data();
        double *labels = net.blob_by_name("label")->mutable_cpu_data();
        for (int n = 0; n < batch; n++) {
            const size_t from = (size_t)(step * batch + n) % samples;
            std::copy_n(&x[from * elems], elems, to + (size_t)n * elems);
            labels[n] = label[from];
        }
        solver->Step(1);
        if (step + 1 == snapshot)
            solver->Snapshot();
    }
    write_weights(net, argv[3]);
    return 0;
}
