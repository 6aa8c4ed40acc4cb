/*
 * convoy/convoy.hpp: the C API for C++17: objects that destroy themselves, arrays that know their type and size, and
 * exceptions.
 *
 *     convoy::context context;                                     // or context(MPI_COMM_WORLD, 0), after convoy/mpi.h
 *     convoy::network network(context, "runs/demo");
 *     std::vector<double> x = ..., y(n * 2);
 *     network.apply(n, x, y);
 *
 * An array is anything with data() and size(): std::vector, std::array, std::span. Its elements are float, double,
 * int64_t, int32_t or uint8_t. Inputs and outputs are converted; variables have the program's dtype. Shapes are
 * row-major, without the samples.
 *
 * A fault is a convoy::error, which has the status and the library's sentence. Objects can be moved and not copied. A
 * context must outlive what was made from it, and be destroyed before MPI_Finalize. handle() gives the handle for all
 * functions of the C API that have no method here. Nothing in this file is compiled into the library.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CONVOY_CONVOY_HPP
#define CONVOY_CONVOY_HPP

#include <convoy/convoy.h>
#include <cstdio>
#include <functional>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace convoy
{

/** A call of the library failed. what() says what, where, the value and what to do. */
class error : public std::runtime_error
{
  public:
    explicit error(cvy_status status) : std::runtime_error(cvy_error_text()), status_(status)
    {
    }
    /** The fault. */
    cvy_status status() const noexcept
    {
        return status_;
    }

  private:
    cvy_status status_;
};

/** Throws if the status is a fault. Returns it otherwise: CVY_OK, CVY_END, CVY_STOPPED .. */
inline cvy_status check(cvy_status status)
{
    if (status < 0)
        throw error(status);
    return status;
}

/** The dtype of the elements of arrays. */
template <class T> constexpr cvy_dtype dtype_of()
{
    using U = std::remove_cv_t<T>;
    static_assert(std::is_same_v<U, float> || std::is_same_v<U, double> || std::is_same_v<U, int64_t> ||
                      std::is_same_v<U, int32_t> || std::is_same_v<U, uint8_t>,
                  "arrays have elements of float, double, int64_t, int32_t or uint8_t");
    if (std::is_same_v<U, float>)
        return CVY_DTYPE_F32;
    if (std::is_same_v<U, double>)
        return CVY_DTYPE_F64;
    if (std::is_same_v<U, int64_t>)
        return CVY_DTYPE_I64;
    return std::is_same_v<U, int32_t> ? CVY_DTYPE_I32 : CVY_DTYPE_U8;
}

template <class Array> constexpr cvy_dtype dtype_of(const Array &array)
{
    return dtype_of<std::remove_pointer_t<decltype(array.data())>>();
}

/** A shape of these extents. */
inline cvy_shape shape(std::initializer_list<int64_t> dims)
{
    cvy_shape out{};
    if (dims.size() > CVY_NDIM_MAX)
        throw std::invalid_argument("convoy::shape: a shape has at most CVY_NDIM_MAX dimensions");
    for (int64_t n : dims)
        out.dim[out.ndim++] = n;
    return out;
}

/** What all objects here have: a handle that is destroyed with them. */
template <class Handle, void (*Destroy)(Handle **)> class owner
{
  public:
    owner() = default;
    owner(owner &&other) noexcept : handle_(std::exchange(other.handle_, nullptr))
    {
    }
    owner &operator=(owner &&other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~owner()
    {
        Destroy(&handle_);
    }
    /** The handle of the C API. The object keeps it. */
    Handle *handle() const noexcept
    {
        return handle_;
    }

  protected:
    Handle *handle_ = nullptr;
};

/** The value or the gradient of a layer: reads and writes the tensors of the call (convoy/operator.h). */
using function = std::function<void(const cvy_operator_call &)>;

/** A group of ranks with its threads. */
class context : public owner<cvy_context, cvy_context_destroy>
{
  public:
    /** This rank alone. threads: 0 for as many as the rank may use. */
    explicit context(int threads = 0)
    {
        cvy_context_opts opts = cvy_context_opts_default();
        opts.threads = threads;
        check(cvy_context_create(&opts, &handle_));
    }
    explicit context(const cvy_context_opts &opts)
    {
        check(cvy_context_create(&opts, &handle_));
    }
#ifdef CONVOY_MPI_H
    /** The ranks of a communicator, which is duplicated. Collective over it. threads: as above; it has no default,
     * because some MPI libraries have numbers for communicators. */
    context(MPI_Comm comm, int threads)
    {
        cvy_context_opts opts = cvy_context_opts_default();
        opts.threads = threads;
        check(cvy_context_create_mpi(comm, &opts, &handle_));
    }
#endif
    int rank() const
    {
        return cvy_context_rank(handle_);
    }
    int nranks() const
    {
        return cvy_context_nranks(handle_);
    }
    int threads() const
    {
        return cvy_context_threads(handle_);
    }
    /** Where this rank computes: "host", or a device such as "opencl:0". */
    std::string device() const
    {
        return cvy_context_device(handle_);
    }
    /** Makes functions of the program the layer `name` of models that use the context. value writes dst[0], of the
     * shape `result` for each sample; gradient writes those of dsrc[] that have data, and reads ddst[0]; both read
     * src[]. An exception ends the call that runs them, with its text. Collective. */
    void add_function(const std::string &name, function value, function gradient, int sources = 1,
                      const cvy_shape &result = cvy_shape{})
    {
        functions_.push_back(std::make_unique<pair>(std::move(value), std::move(gradient)));
        cvy_operator op = cvy_operator_default();
        op.name = name.c_str();
        op.nsrc_min = op.nsrc_max = sources;
        op.splits = CVY_OPERATOR_SPLIT_SAMPLES;
        op.reads = CVY_OPERATOR_READS_SOURCES;
        op.forward = [](const cvy_operator_call *c) { return run(static_cast<pair *>(c->user)->first, c); };
        op.backward = [](const cvy_operator_call *c) { return run(static_cast<pair *>(c->user)->second, c); };
        op.user = functions_.back().get();
        op.result = result;
        check(cvy_context_add_operator(handle_, &op));
    }

  private:
    using pair = std::pair<function, function>;
    static int run(const function &f, const cvy_operator_call *c)
    {
        try {
            f(*c);
        } catch (const std::exception &fault) {
            std::snprintf(c->message, c->message_bytes, "%s", fault.what());
            return 1;
        } catch (...) {
            return 1;
        }
        return 0;
    }
    std::vector<std::unique_ptr<pair>> functions_;
};

/** The description of a network. */
class model : public owner<cvy_model, cvy_model_destroy>
{
  public:
    explicit model(const std::string &name)
    {
        check(cvy_model_create(name.c_str(), &handle_));
    }
    /** A network of the zoo. input: the shape of a sample; options: as in a job file, "filters: 8". */
    model(const std::string &name, const cvy_shape &input, int64_t classes, const std::string &options = "")
    {
        check(cvy_model_zoo(name.c_str(), or_null(options), &input, classes, &handle_));
    }
    /** A network in an .onnx file, or in a .prototxt file of Caffe. */
    static model from_file(const std::string &path, const std::string &options = "")
    {
        model out;
        check(cvy_model_from_file(path.c_str(), or_null(options), &out.handle_));
        return out;
    }
    /** Before layers that are functions of the program, or of a library of the context. */
    model &use(const context &c)
    {
        check(cvy_model_use_context(handle_, c.handle()));
        return *this;
    }
    model &input(const std::string &name, const cvy_shape &sample, cvy_dtype dtype = CVY_DTYPE_F32)
    {
        check(cvy_model_add_input(handle_, name.c_str(), dtype, &sample));
        return *this;
    }
    /** A layer. from: the layers or inputs that it reads; by default the one that was added before. */
    model &add(const std::string &op, const std::string &name = "", const std::string &options = "",
               const std::string &from = "")
    {
        check(cvy_model_add(handle_, op.c_str(), or_null(name), or_null(options), or_null(from)));
        return *this;
    }

  private:
    model() = default;
    static const char *or_null(const std::string &text)
    {
        return text.empty() ? nullptr : text.c_str();
    }
};

/** A set of weights and tasks over them. Strings in the options must live as long as the program, and models until
 * plan() has returned. */
class program : public owner<cvy_program, cvy_program_destroy>
{
  public:
    explicit program(const context &c, const cvy_program_opts &opts = cvy_program_opts_default())
        : dtype_(opts.dtype == CVY_DTYPE_F64 ? CVY_DTYPE_F64 : CVY_DTYPE_F32)
    {
        check(cvy_program_create(c.handle(), &opts, &handle_));
    }
    /** Each returns the number of the task. batch: samples of all ranks. */
    int add_training(const model &m, int64_t batch, const cvy_training_opts &opts = cvy_training_opts_default())
    {
        int task = -1;
        check(cvy_program_add_training(handle_, m.handle(), batch, &opts, &task));
        return task;
    }
    int add_training(model &&, int64_t, const cvy_training_opts & = cvy_training_opts_default()) = delete;
    int add_forward(model &&, int64_t, const std::string & = "") = delete;
    int add_forward(const model &m, int64_t batch, const std::string &outputs = "")
    {
        int task = -1;
        check(cvy_program_add_forward(handle_, m.handle(), batch, outputs.empty() ? nullptr : outputs.c_str(), &task));
        return task;
    }
    /** Once, after all tasks were added. Collective. */
    void plan()
    {
        check(cvy_program_plan(handle_));
    }
    int64_t rows(int task) const
    {
        return cvy_program_rows(handle_, task);
    }
    int64_t first_row(int task) const
    {
        return cvy_program_first_row(handle_, task);
    }
    /** Says how many of this rank's rows are samples: see cvy_program_set_rows(). */
    void set_rows(int task, int64_t n)
    {
        check(cvy_program_set_rows(handle_, task, n));
    }
    /** Copies an array [rows, sample...] into an input. */
    template <class Array> void write(int task, const std::string &input, const Array &array)
    {
        check(cvy_program_write_input(handle_, task, input.c_str(), dtype_of(array), array.data(),
                                      static_cast<int64_t>(array.size())));
    }
    /** Runs a task once. Collective. */
    void step(int task, double learning_rate = 0)
    {
        check(cvy_program_step(handle_, task, learning_rate));
    }
    void flush()
    {
        check(cvy_program_flush(handle_));
    }
    /** Of a training step: over the global batch. Of a forward task: this rank's part, to be added over the ranks. */
    double loss(int task, const std::string &name) const
    {
        double value = 0;
        check(cvy_program_loss(handle_, task, name.c_str(), &value));
        return value;
    }
    /** Copies this rank's rows of an output into an array of float or double. */
    template <class Array> void read(int task, const std::string &layer, Array &&array) const
    {
        check(cvy_program_read_output(handle_, task, layer.c_str(), dtype_of(array), array.data(),
                                      static_cast<int64_t>(array.size())));
    }
    /** Copy a variable, in the program's dtype: float, or double if that is F64. */
    template <class T> std::vector<T> get(const std::string &variable, int64_t elems) const
    {
        std::vector<T> out(static_cast<size_t>(elems));
        check_dtype(dtype_of<T>());
        check(cvy_program_get(handle_, variable.c_str(), out.data(), elems));
        return out;
    }
    template <class Array> void set(const std::string &variable, const Array &array)
    {
        check_dtype(dtype_of(array));
        check(cvy_program_set(handle_, variable.c_str(), array.data(), static_cast<int64_t>(array.size())));
    }
    void save(const std::string &path) const
    {
        check(cvy_program_save(handle_, path.c_str()));
    }
    void load(const std::string &path)
    {
        check(cvy_program_load(handle_, path.c_str()));
    }

  private:
    void check_dtype(cvy_dtype dtype) const
    {
        if (dtype != dtype_)
            throw std::invalid_argument(std::string("convoy::program: variables are of dtype ") +
                                        cvy_dtype_text(dtype_) + ", the array is of " + cvy_dtype_text(dtype));
    }

    cvy_dtype dtype_;
};

/** Samples of this rank, of which some are kept, and from which training steps draw (convoy/stream.h). */
class reservoir : public owner<cvy_reservoir, cvy_reservoir_destroy>
{
  public:
    explicit reservoir(const cvy_reservoir_opts &opts)
    {
        check(cvy_reservoir_create(&opts, &handle_));
    }
    reservoir &add_field(const std::string &name, const cvy_shape &sample, cvy_dtype dtype = CVY_DTYPE_F32)
    {
        check(cvy_reservoir_add_field(handle_, name.c_str(), dtype, &sample));
        return *this;
    }
    /** A field of some new samples, which push() adds. */
    template <class Array> reservoir &put(const std::string &field, const Array &array)
    {
        check(cvy_reservoir_put(handle_, field.c_str(), dtype_of(array), array.data(),
                                static_cast<int64_t>(array.size())));
        return *this;
    }
    void push()
    {
        check(cvy_reservoir_push(handle_));
    }
    /** Fills the inputs of a task. */
    void draw(const program &p, int task)
    {
        check(cvy_reservoir_draw(handle_, p.handle(), task));
    }
    /** Losses of the samples of the latest draw, of a reservoir that keeps by "loss". */
    void set_losses(const std::vector<double> &losses)
    {
        check(cvy_reservoir_set_losses(handle_, losses.data(), static_cast<int64_t>(losses.size())));
    }
    int64_t held() const
    {
        return cvy_reservoir_held(handle_);
    }
    int64_t seen() const
    {
        return cvy_reservoir_seen(handle_);
    }
    std::vector<unsigned char> save() const
    {
        std::vector<unsigned char> state(static_cast<size_t>(cvy_reservoir_bytes(handle_)));
        check(cvy_reservoir_save(handle_, state.data(), static_cast<int64_t>(state.size())));
        return state;
    }
    void load(const std::vector<unsigned char> &state)
    {
        check(cvy_reservoir_load(handle_, state.data(), static_cast<int64_t>(state.size())));
    }
};

/** Samples on their way from solvers to trainers, and weights on their way back (convoy/stream.h). The reservoir and
 * the program of its options live longer. */
class stream : public owner<cvy_stream, cvy_stream_destroy>
{
  public:
    stream(const context &c, const cvy_stream_opts &opts)
    {
        check(cvy_stream_create(c.handle(), &opts, &handle_));
    }
    /** A field of some new samples, which push() sends. */
    template <class Array> stream &put(const std::string &field, const Array &array)
    {
        check(
            cvy_stream_put(handle_, field.c_str(), dtype_of(array), array.data(), static_cast<int64_t>(array.size())));
        return *this;
    }
    /** False: the trainers have ended. A trainer that does not answer is an error of status CVY_E_COMM. */
    bool push()
    {
        return check(cvy_stream_push(handle_)) == CVY_OK;
    }
    /** False: some samples still wait, or the trainers have ended. */
    bool flush(double seconds)
    {
        return check(cvy_stream_flush(handle_, seconds)) == CVY_OK;
    }
    /** Number of the weights that the program has now. */
    int64_t take()
    {
        int64_t version = 0;
        check(cvy_stream_take(handle_, &version));
        return version;
    }
    /** False: all solvers have ended. */
    bool receive()
    {
        return check(cvy_stream_receive(handle_)) == CVY_OK;
    }
    void publish()
    {
        check(cvy_stream_publish(handle_));
    }
    cvy_stream_counts counts() const
    {
        cvy_stream_counts counts = cvy_stream_counts_default();
        check(cvy_stream_get_counts(handle_, &counts));
        return counts;
    }
};

/** A trained network that is ready to be applied. */
class network : public owner<cvy_network, cvy_network_destroy>
{
  public:
    /** target: a run's folder, a checkpoint, a .safetensors file, an .onnx file. */
    network(const context &c, const std::string &target, const cvy_network_opts &opts = cvy_network_opts_default())
    {
        check(cvy_network_open(c.handle(), target.c_str(), &opts, &handle_));
    }
    /** Computes the first output of n samples. x: [n, sample...] of the first input; y: [n, ...] of float or double. */
    template <class In, class Out> void apply(int64_t n, const In &x, Out &&y)
    {
        const cvy_network_in in = {input_name(), dtype_of(x), static_cast<int64_t>(x.size()), x.data(), {}};
        const cvy_network_out out = {nullptr, dtype_of(y), static_cast<int64_t>(y.size()), y.data()};
        check(cvy_network_apply(handle_, n, &in, 1, &out, 1));
    }
    /** The shape of a sample. */
    cvy_shape input_shape(int i = 0) const
    {
        cvy_shape out{};
        check(cvy_network_input(handle_, i, nullptr, nullptr, &out));
        return out;
    }
    cvy_shape output_shape(int i = 0) const
    {
        cvy_shape out{};
        check(cvy_network_output(handle_, i, nullptr, &out));
        return out;
    }

  private:
    const char *input_name() const
    {
        const char *name = nullptr;
        check(cvy_network_input(handle_, 0, &name, nullptr, nullptr));
        return name;
    }
};

} // namespace convoy

#endif
