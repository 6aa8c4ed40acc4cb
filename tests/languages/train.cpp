/*
 * train.cpp: the training of train.c, in C++. It prints the bits of a loss and of all weights.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <convoy/mpi.h>

#include <cinttypes>
#include <convoy/convoy.hpp>
#include <cstdio>
#include <cstring>

namespace
{

constexpr int64_t wide = 6, high = 5, channels = 2, classes = 3, batch = 12, steps = 5, sample = channels * high * wide;

template <class Array> void print_bits(const Array &x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        std::memcpy(&bits, &x[i], sizeof bits);
        std::printf("%08" PRIX32 "\n", bits);
    }
}

void train()
{
    convoy::context context(MPI_COMM_WORLD, 1);
    convoy::model model("same");
    model.input("x", convoy::shape({channels, high, wide}))
        .input("label", convoy::shape({}), CVY_DTYPE_I32)
        .add("conv", "conv", "channels: 4, kernel: 3, pad: 1", "x")
        .add("relu")
        .add("fc", "fc", "channels: 3")
        .add("softmax_cross_entropy", "loss", "", "fc, label");
    cvy_program_opts opts = cvy_program_opts_default();
    opts.seed = 7, opts.wisdom = "off", opts.precise = 1;
    cvy_training_opts training = cvy_training_opts_default();
    training.optimizer = "adam", training.weight_decay = 1e-3;
    convoy::program program(context, opts);
    const int task = program.add_training(model, batch, training), forward = program.add_forward(model, batch, "fc");
    program.plan();
    const int64_t rows = program.rows(task), first = program.first_row(task);
    std::vector<double> x(static_cast<size_t>(rows * sample));
    std::vector<int64_t> label(static_cast<size_t>(rows));
    for (int64_t step = 1; step <= steps; step++) {
        for (int64_t i = 0; i < rows * sample; i++)
            x[static_cast<size_t>(i)] = static_cast<double>((37 * (first * sample + i) + 11 * step) % 64 - 32) / 64;
        for (int64_t n = 0; n < rows; n++)
            label[static_cast<size_t>(n)] = (first + n + step) % classes;
        program.write(task, "x", x);
        program.write(task, "label", label);
        program.step(task, 0.01);
    }
    const double loss = program.loss(task, "loss"); // valid until the program runs its next task
    program.write(forward, "x", x);
    program.step(forward);
    std::vector<float> score(static_cast<size_t>(rows * classes));
    program.read(forward, "fc", score);
    if (context.rank() == 0) {
        uint64_t bits;
        std::memcpy(&bits, &loss, sizeof bits);
        std::printf("%016" PRIX64 "\n", bits);
        print_bits(score, classes);
        print_bits(program.get<float>("conv.weight", 4 * channels * 9), 4 * channels * 9);
        print_bits(program.get<float>("fc.weight", classes * 4 * high * wide), classes * 4 * high * wide);
    }
}

/* What was moved from is empty, and a fault is an exception with its status. */
bool faults_are_exceptions()
{
    convoy::context context(1), other(std::move(context));
    bool thrown = context.handle() == nullptr && other.rank() == 0;
    try {
        convoy::network network(other, "nothing/here");
        thrown = false;
    } catch (const convoy::error &fault) {
        thrown = thrown && fault.status() == CVY_E_ARGUMENT && std::strstr(fault.what(), "nothing/here");
    }
    return thrown;
}

/* Samples that are pushed come back in batches; variables of another dtype are refused. */
bool reservoir_fills_inputs()
{
    cvy_reservoir_opts opts = cvy_reservoir_opts_default();
    opts.capacity = 4;
    convoy::context context(1);
    convoy::model model("line");
    model.input("x", convoy::shape({2})).add("fc", "fc", "channels: 1", "x");
    convoy::program program(context);
    const int apply = program.add_forward(model, 4, "fc");
    program.plan();
    convoy::reservoir kept(opts), other(opts);
    kept.add_field("x", convoy::shape({2}));
    other.add_field("x", convoy::shape({2}));
    kept.put("x", std::vector<double>(8, 0.5)).push();
    other.load(kept.save());
    other.draw(program, apply);
    program.step(apply);
    program.set("fc.weight", std::vector<float>{1, 2});
    program.step(apply);
    std::vector<double> y(4);
    program.read(apply, "fc", y);
    bool thrown = false;
    try {
        program.set("fc.weight", std::vector<double>{1, 2});
    } catch (const std::invalid_argument &) {
        thrown = true;
    }
    return thrown && other.held() == 4 && other.seen() == 4 && y[0] == 1.5 && y[3] == 1.5;
}

/* One rank that sends samples to itself. */
bool stream_carries_samples()
{
    cvy_reservoir_opts opts = cvy_reservoir_opts_default();
    opts.capacity = 4;
    convoy::context context(1);
    convoy::reservoir kept(opts);
    kept.add_field("x", convoy::shape({2}));
    cvy_stream_opts stream_opts = cvy_stream_opts_default();
    stream_opts.role = "both";
    stream_opts.reservoir = kept.handle();
    convoy::stream stream(context, stream_opts);
    const bool sent = stream.put("x", std::vector<double>{1, 2, 3, 4}).push() && stream.receive() && stream.flush(0);
    return sent && kept.held() == 2 && stream.counts().delivered == 2;
}

/* A layer of the program has its own data; what it throws is the message of the step. */
bool functions_are_layers()
{
    double factor = 3;
    convoy::context context(1);
    const auto times = [&factor](const cvy_operator_tensor &from, const cvy_operator_tensor &to) {
        if (factor < 0)
            throw std::runtime_error("a negative factor");
        for (int64_t i = 0; i < to.elems; i++)
            if (from.dtype == CVY_DTYPE_F64)
                static_cast<double *>(to.data)[i] = factor * static_cast<const double *>(from.data)[i];
            else
                static_cast<float *>(to.data)[i] =
                    static_cast<float>(factor * static_cast<double>(static_cast<const float *>(from.data)[i]));
    };
    context.add_function(
        "times", [&times](const cvy_operator_call &c) { times(c.src[0], c.dst[0]); },
        [&times](const cvy_operator_call &c) { times(c.ddst[0], c.dsrc[0]); }, 1, convoy::shape({2}));
    cvy_operators_opts opts = cvy_operators_opts_default();
    cvy_operators_result found = cvy_operators_result_default();
    opts.sources = "4x2";
    convoy::check(cvy_run_check_operators(context.handle(), nullptr, &opts, &found));
    convoy::model model("line");
    model.use(context).input("x", convoy::shape({2})).add("times", "out", "", "x");
    convoy::program program(context);
    const int apply = program.add_forward(model, 1, "out");
    program.plan();
    program.write(apply, "x", std::vector<double>{1, -2});
    program.step(apply);
    std::vector<double> y(2);
    program.read(apply, "out", y);
    bool thrown = false;
    factor = -1;
    try {
        program.step(apply);
    } catch (const convoy::error &fault) {
        thrown = std::strstr(fault.what(), "a negative factor") != nullptr;
    }
    return thrown && found.checks == 5 && found.failed == 0 && y[0] == 3 && y[1] == -6;
}

} // namespace

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    train();
    const bool good =
        faults_are_exceptions() && reservoir_fills_inputs() && stream_carries_samples() && functions_are_layers();
    MPI_Finalize();
    return good ? 0 : 1;
}
