/*
 * embedded_torch.cpp: how long a C++ program waits for a small network in LibTorch, which is also what FTorch calls
 * (scripts/compare_embedded.sh). The input is a view of the program's memory, and the output is copied back to it.
 *
 *     embedded_torch NETWORK.pt THREADS INPUTS OUTPUTS
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <torch/script.h>

#include <ATen/Parallel.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    const int inputs = std::atoi(argv[3]), outputs = std::atoi(argv[4]), rounds = 5;
    at::set_num_threads(std::atoi(argv[2]));
    torch::InferenceMode guard;
    auto network = torch::jit::load(argv[1]);
    network.eval();
    network = torch::jit::optimize_for_inference(network);
    for (const int n : {1, 64, 4096}) {
        const int calls = 400000 / (n + 200);
        std::vector<float> x(static_cast<size_t>(inputs) * n, 0.3f), y(static_cast<size_t>(outputs) * n);
        double best = 1e30;
        for (int round = 0; round <= rounds; round++) { // the first one warms up
            const auto from = std::chrono::steady_clock::now();
            for (int k = 0; k < calls; k++) {
                const auto result = network.forward({torch::from_blob(x.data(), {n, inputs})}).toTensor();
                torch::from_blob(y.data(), {n, outputs}).copy_(result);
            }
            const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - from;
            if (round > 0)
                best = std::min(best, 1e6 * passed.count() / calls);
        }
        std::printf("%d %.3f\n", n, best);
    }
    return 0;
}
