# SPDX-License-Identifier: BSD-3-Clause
"""The C API of convoy for ctypes: made by tools/make_bindings.py from include/convoy/. Do not edit it."""
import ctypes as c


CVY_VERSION_MAJOR = 0
CVY_VERSION_MINOR = 2
CVY_VERSION_PATCH = 0
CVY_NDIM_MAX = 6
CVY_OK = 0
CVY_END = 1
CVY_NOT_APPLICABLE = 2
CVY_STOPPED = 4
CVY_E_ARGUMENT = -1
CVY_E_SHAPE = -2
CVY_E_CONFIG = -3
CVY_E_IO = -4
CVY_E_FORMAT = -5
CVY_E_MEMORY = -6
CVY_E_COMM = -7
CVY_E_UNSUPPORTED = -8
CVY_E_NUMERIC = -9
CVY_E_INTERNAL = -10
CVY_E_DISAGREE = -11
CVY_DTYPE_F32 = 0
CVY_DTYPE_F64 = 1
CVY_DTYPE_I64 = 2
CVY_DTYPE_I32 = 3
CVY_DTYPE_U8 = 4
CVY_DTYPE_BF16 = 5
CVY_DTYPE_COUNT = 6
CVY_LOG_ERROR = 0
CVY_LOG_WARN = 1
CVY_LOG_INFO = 2
CVY_LOG_DEBUG = 3
CVY_OUTPUT_VALUES = 0
CVY_OUTPUT_LOGITS = 1
CVY_OUTPUT_LOG_PROBABILITIES = 2
CVY_OUTPUT_PROBABILITIES = 3
CVY_OUTPUT_YES_LOGITS = 4
CVY_OUTPUT_YES_PROBABILITIES = 5
CVY_UPDATE_SYNC = 0
CVY_UPDATE_DELAYED = 1
CVY_UPDATE_LOCAL = 2
CVY_UPDATE_PARAMETER_SERVER = 3
CVY_UPDATE_ZERO1 = 4
CVY_TRAIN_STOP = 0
CVY_TRAIN_SAVE = 1
CVY_SELFTEST_PASSED = 0
CVY_SELFTEST_FAILED = 1
CVY_SELFTEST_SKIPPED = 2
CVY_PROFILE_KEYS = 32
CVY_RUN_STATE_UNKNOWN = 0
CVY_RUN_STATE_RUNNING = 1
CVY_RUN_STATE_STOPPED = 2
CVY_RUN_STATE_FINISHED = 3
CVY_RUN_STATE_EARLY_STOP = 4
CVY_RUN_STATE_FAILED = 5
CVY_RUN_STATE_KILLED = 6
CVY_EXTENSION_ABI = 1
CVY_OPERATOR_SOURCES_MAX = 4
CVY_OPERATOR_PARAMS_MAX = 4
CVY_OPERATOR_SAVED_MAX = 2
CVY_OPERATOR_INT = 0
CVY_OPERATOR_REAL = 1
CVY_OPERATOR_BOOL = 2
CVY_OPERATOR_CHOICE = 3
CVY_OPERATOR_SPLIT_SAMPLES = 1
CVY_OPERATOR_SPLIT_CHANNELS = 2
CVY_OPERATOR_SPLIT_OUTPUTS = 4
CVY_OPERATOR_SPLIT_INPUTS = 8
CVY_OPERATOR_SPLIT_SPACE = 16
CVY_OPERATOR_READS_SOURCES = 1
CVY_OPERATOR_READS_RESULT = 2
CVY_OPERATOR_SAMPLE_POSITIVE = 1
CVY_OPERATOR_SAMPLE_NO_GRADIENT = 2
CVY_REDUCER_ALL = -1
CVY_REPORT_RUNS_MAX = 8
CVY_PREDICT_OUTPUTS = 0
CVY_PREDICT_PROBABILITIES = 1
CVY_PREDICT_CLASSES = 2
CVY_BENCH_TRAIN = 0
CVY_BENCH_FORWARD = 1
CVY_BENCH_FORWARD_BACKWARD = 2


class cvy_shape(c.Structure):
    _fields_ = [("ndim", c.c_int),
                ("dim", c.c_int64 * 6)]


class cvy_context_opts(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("threads", c.c_int),
                ("log_level", c.c_int),
                ("log", c.c_void_p),
                ("log_user", c.c_void_p),
                ("fatal", c.c_void_p),
                ("fatal_user", c.c_void_p),
                ("backend", c.c_char_p),
                ("watchdog_s", c.c_double)]


class cvy_program_opts(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("dtype", c.c_int),
                ("seed", c.c_uint64),
                ("batch_norm_group", c.c_int64),
                ("kernels", c.c_char_p),
                ("passes_off", c.c_char_p),
                ("bucket_bytes", c.c_int64),
                ("reduce", c.c_char_p),
                ("reduce_wire", c.c_int),
                ("reduce_progress", c.c_char_p),
                ("reduce_no_node", c.c_int),
                ("overlap_forward", c.c_int),
                ("share_weights", c.c_int),
                ("plan_file", c.c_char_p),
                ("planning", c.c_char_p),
                ("precise", c.c_int),
                ("wisdom", c.c_char_p),
                ("memory_limit", c.c_int64),
                ("update_mode", c.c_int),
                ("update_servers", c.c_int64),
                ("update_staleness", c.c_int64),
                ("clock_scale", c.c_double),
                ("clock_noise", c.c_double),
                ("reduce_blocking", c.c_int),
                ("shards", c.c_int64),
                ("gradients_only", c.c_int),
                ("pipeline", c.c_int64),
                ("pipeline_order", c.c_char_p),
                ("tensor", c.c_int64),
                ("tensor_layers", c.c_char_p),
                ("spatial", c.c_int64 * 3),
                ("first_layers", c.c_char_p),
                ("interleave", c.c_int64),
                ("batch_norm_frozen", c.c_char_p),
                ("outputs_in_parts", c.c_int)]


class cvy_training_group(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("match", c.c_char_p),
                ("lr_mult", c.c_double),
                ("decay_mult", c.c_double),
                ("no_decay", c.c_int),
                ("frozen", c.c_int)]


class cvy_training_opts(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("losses", c.c_char_p),
                ("trains", c.c_char_p),
                ("optimizer", c.c_char_p),
                ("optimizer_options", c.c_char_p),
                ("weight_decay", c.c_double),
                ("clip_norm", c.c_double),
                ("clip_value", c.c_double),
                ("accumulate", c.c_int64),
                ("outputs", c.c_char_p),
                ("groups", c.POINTER(cvy_training_group)),
                ("ngroups", c.c_int),
                ("l1", c.c_double),
                ("clip_weights", c.c_double),
                ("label", c.c_char_p)]


class cvy_checkpoint_opts(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("folder", c.c_char_p),
                ("step", c.c_int64),
                ("state", c.c_char_p),
                ("keep", c.c_int),
                ("is_best", c.c_int)]


class cvy_checkpoint_about(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("step", c.c_int64),
                ("state", c.c_void_p),
                ("notes", c.c_void_p)]


class cvy_checkpoint_entry(c.Structure):
    _fields_ = [("name", c.c_char_p),
                ("step", c.c_int64),
                ("is_best", c.c_int),
                ("is_valid", c.c_int)]


class cvy_checkpoint_entries(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("at", c.POINTER(cvy_checkpoint_entry)),
                ("count", c.c_int64),
                ("owned", c.c_void_p)]


class cvy_convert_request(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("source", c.c_char_p),
                ("destination", c.c_char_p),
                ("format", c.c_char_p),
                ("options", c.c_char_p),
                ("parts", c.c_int64),
                ("height", c.c_int64),
                ("width", c.c_int64),
                ("unchecked", c.c_int),
                ("skip_bad", c.c_int),
                ("progress", c.c_void_p),
                ("user", c.c_void_p)]


class cvy_data_opts(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("augment", c.c_char_p),
                ("random", c.c_int),
                ("seed", c.c_uint64)]


class cvy_data_about(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("samples", c.c_int64),
                ("classes", c.c_int64),
                ("fields", c.c_int64),
                ("format", c.c_char_p)]


class cvy_data_loader_opts(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("batch", c.c_int64),
                ("accumulate", c.c_int64),
                ("epochs", c.c_int64),
                ("first_step", c.c_int64),
                ("shuffle", c.c_char_p),
                ("seed", c.c_uint64),
                ("keep_tail", c.c_int),
                ("skip_bad", c.c_int),
                ("threads", c.c_int),
                ("prefetch", c.c_int)]


class cvy_data_batch(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("step", c.c_int64),
                ("epoch", c.c_int64),
                ("batch", c.c_int64),
                ("rows", c.c_int64),
                ("field", c.POINTER(c.c_void_p)),
                ("sample", c.POINTER(c.c_int64)),
                ("weight", c.POINTER(c.c_double)),
                ("data", c.c_void_p)]


class cvy_job_source(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("path", c.c_char_p),
                ("text", c.c_char_p),
                ("sets", c.POINTER(c.c_char_p)),
                ("nsets", c.c_int),
                ("caffe", c.c_char_p),
                ("caffe_weights", c.c_char_p),
                ("caffe_state", c.c_char_p),
                ("caffe_input", cvy_shape)]


class cvy_job_about(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("name", c.c_char * 256),
                ("batch", c.c_int64),
                ("workers", c.c_int64)]


class cvy_import_opts(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("weights", c.c_char_p),
                ("out", c.c_char_p),
                ("replace", c.c_int),
                ("input", cvy_shape)]


class cvy_progress(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("step", c.c_int64),
                ("steps", c.c_int64),
                ("epoch", c.c_double),
                ("epochs", c.c_double),
                ("loss", c.c_double),
                ("images_per_s", c.c_double),
                ("elapsed_s", c.c_double),
                ("left_s", c.c_double),
                ("event", c.c_char_p)]


class cvy_train_opts(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("out", c.c_char_p),
                ("resume", c.c_int),
                ("plan_file", c.c_char_p),
                ("control", c.c_void_p),
                ("end_time", c.c_double),
                ("progress", c.c_void_p),
                ("user", c.c_void_p),
                ("end_source", c.c_char_p)]


class cvy_train_result(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("out", c.c_char * 512),
                ("steps", c.c_int64),
                ("seconds", c.c_double),
                ("train_loss", c.c_double),
                ("val_loss", c.c_double),
                ("has_test", c.c_int),
                ("new_steps", c.c_int64)]


class cvy_doctor_opts(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("max", c.c_char_p),
                ("seconds", c.c_double),
                ("out", c.c_char_p),
                ("platform", c.c_int)]


class cvy_doctor_result_node(c.Structure):
    _fields_ = [("host", c.c_char * 64),
                ("cpu", c.c_char * 64),
                ("first_rank", c.c_int64),
                ("ranks", c.c_int64),
                ("threads", c.c_int64),
                ("bound_to", c.c_char * 96),
                ("cores_used", c.c_int),
                ("cores_permitted", c.c_int),
                ("gb_per_s_from_the_node_before", c.c_double)]


class cvy_doctor_result_rank(c.Structure):
    _fields_ = [("node", c.c_int64),
                ("threads", c.c_int64),
                ("bound_to", c.c_char * 96)]


class cvy_doctor_result_clock(c.Structure):
    _fields_ = [("apart_s", c.c_double),
                ("went_back", c.c_int64),
                ("set_s", c.c_double),
                ("read_s", c.c_double)]


class cvy_doctor_result_files(c.Structure):
    _fields_ = [("folder", c.c_char_p),
                ("ranks_that_do_not_see_them", c.c_int),
                ("is_known", c.c_int),
                ("bytes", c.c_int64),
                ("free_bytes", c.c_int64),
                ("write_mb_per_s", c.c_double),
                ("read_mb_per_s", c.c_double),
                ("small_ms", c.c_double)]


class cvy_doctor_result_link(c.Structure):
    _fields_ = [("from", c.c_int),
                ("to", c.c_int),
                ("alpha_us", c.c_double),
                ("gb_per_s", c.c_double),
                ("npoints", c.c_int),
                ("bytes", c.POINTER(c.c_int64)),
                ("us", c.POINTER(c.c_double))]


class cvy_doctor_result_method(c.Structure):
    _fields_ = [("name", c.c_char * 32),
                ("ms_best", c.c_double),
                ("ms_median", c.c_double),
                ("gb_per_s", c.c_double),
                ("wrong", c.c_int64)]


class cvy_doctor_result_sum(c.Structure):
    _fields_ = [("bytes", c.c_int64),
                ("trials", c.c_int),
                ("nmethods", c.c_int),
                ("method", c.POINTER(cvy_doctor_result_method)),
                ("chosen", c.c_int),
                ("fastest", c.c_int)]


class cvy_doctor_result(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("nnodes", c.c_int),
                ("nranks", c.c_int),
                ("node", c.POINTER(cvy_doctor_result_node)),
                ("rank", c.POINTER(cvy_doctor_result_rank)),
                ("leaders", c.c_int64),
                ("node_memory", c.c_char * 24),
                ("mpi_library", c.c_char * 192),
                ("mpi_threads", c.c_char * 24),
                ("clock", c.POINTER(cvy_doctor_result_clock)),
                ("files", c.POINTER(cvy_doctor_result_files)),
                ("inside_a_node", c.POINTER(cvy_doctor_result_link)),
                ("between_nodes", c.POINTER(cvy_doctor_result_link)),
                ("nsums", c.c_int),
                ("sum", c.POINTER(cvy_doctor_result_sum)),
                ("left_out_from_bytes", c.c_int64),
                ("nfindings", c.c_int),
                ("finding", c.POINTER(c.c_char_p)),
                ("owned", c.c_void_p),
                ("platform", c.c_char_p)]


class cvy_selftest_opts(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("out", c.c_char_p),
                ("ranks", c.c_int64),
                ("only", c.c_char_p),
                ("kernel_s", c.c_double),
                ("limit_s", c.c_double),
                ("control", c.c_void_p),
                ("line", c.c_void_p),
                ("user", c.c_void_p)]


class cvy_selftest_result_check(c.Structure):
    _fields_ = [("name", c.c_char_p),
                ("verdict", c.c_int),
                ("text", c.c_char_p),
                ("note", c.c_char_p),
                ("seconds", c.c_double)]


class cvy_selftest_result(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("passed", c.c_int),
                ("failed", c.c_int),
                ("skipped", c.c_int),
                ("ranks", c.c_int),
                ("seconds", c.c_double),
                ("nchecks", c.c_int),
                ("check", c.POINTER(cvy_selftest_result_check)),
                ("owned", c.c_void_p)]


class cvy_study_opts(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("name", c.c_char_p),
                ("text", c.c_char_p),
                ("out", c.c_char_p),
                ("frameworks", c.c_char_p),
                ("program", c.c_char_p),
                ("only", c.c_char_p),
                ("published", c.c_char_p),
                ("quick", c.c_int),
                ("retry", c.c_int),
                ("stop", c.POINTER(c.c_int)),
                ("show", c.c_void_p),
                ("user", c.c_void_p),
                ("data", c.POINTER(c.c_char_p)),
                ("ndata", c.c_int),
                ("only_cases", c.POINTER(c.c_char_p)),
                ("nonly", c.c_int),
                ("nodes", c.c_int64),
                ("ranks_per_node", c.c_int64)]


class cvy_study_result(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("total", c.c_int64),
                ("measured", c.c_int64),
                ("earlier", c.c_int64),
                ("failed", c.c_int64),
                ("skipped", c.c_int64)]


class cvy_tune_opts(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("network", c.c_char_p),
                ("is_job", c.c_int),
                ("batches", c.c_char_p),
                ("first_batch", c.c_int),
                ("sets", c.POINTER(c.c_char_p)),
                ("nsets", c.c_int),
                ("seconds", c.c_int64),
                ("out", c.c_char_p),
                ("frameworks", c.c_char_p),
                ("program", c.c_char_p),
                ("stop", c.POINTER(c.c_int)),
                ("show", c.c_void_p),
                ("user", c.c_void_p)]


class cvy_tune_result(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("ranks", c.c_int),
                ("threads", c.c_int),
                ("batch", c.c_int64),
                ("progress", c.c_char * 16),
                ("overlap", c.c_char * 16),
                ("bucket", c.c_char * 16),
                ("settings", c.c_int64),
                ("measurements", c.c_int64),
                ("images_per_s", c.c_double),
                ("images_per_s_default", c.c_double)]


class cvy_profile(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("ranks", c.c_int),
                ("threads", c.c_int),
                ("key", c.c_char * 128 * 32),
                ("nkeys", c.c_int)]


class cvy_run_summary(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("folder", c.c_char * 512),
                ("state", c.c_int),
                ("why", c.c_char * 1280),
                ("step", c.c_int64),
                ("steps", c.c_int64),
                ("epoch", c.c_double),
                ("epochs", c.c_double),
                ("metric", c.c_char * 80),
                ("best", c.c_double),
                ("best_epoch", c.c_double),
                ("best_higher", c.c_int),
                ("last_loss", c.c_double),
                ("images_per_s", c.c_double),
                ("seconds", c.c_double),
                ("left_s", c.c_double),
                ("nodes", c.c_int),
                ("ranks", c.c_int),
                ("changed", c.c_double)]


class cvy_run_list_result(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("nruns", c.c_int),
                ("run", c.POINTER(cvy_run_summary)),
                ("nunreadable", c.c_int),
                ("unreadable", c.POINTER(c.c_char_p)),
                ("owned", c.c_void_p)]


class cvy_metric_batch(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("rows", c.c_int64),
                ("output", c.c_void_p),
                ("output_dtype", c.c_int),
                ("target", c.c_void_p),
                ("target_dtype", c.c_int),
                ("weight", c.POINTER(c.c_double))]


class cvy_network_opts(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("job", c.POINTER(cvy_job_source)),
                ("checkpoint", c.c_char_p),
                ("outputs", c.c_char_p),
                ("batch", c.c_int64),
                ("weights", c.c_char_p)]


class cvy_network_about(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("name", c.c_char_p),
                ("step", c.c_int64),
                ("parameters", c.c_int64),
                ("classes", c.c_int64),
                ("inputs", c.c_int64),
                ("outputs", c.c_int64),
                ("temperature", c.c_double)]


class cvy_network_in(c.Structure):
    _fields_ = [("name", c.c_char_p),
                ("dtype", c.c_int),
                ("elems", c.c_int64),
                ("data", c.c_void_p),
                ("shape", cvy_shape)]


class cvy_network_out(c.Structure):
    _fields_ = [("name", c.c_char_p),
                ("dtype", c.c_int),
                ("elems", c.c_int64),
                ("data", c.c_void_p)]


class cvy_network_export_opts(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("opset", c.c_int64),
                ("float_input", c.c_int),
                ("replace", c.c_int),
                ("net", c.c_char_p)]


class cvy_partition_layer(c.Structure):
    _fields_ = [("name", c.c_char_p),
                ("op", c.c_char_p),
                ("nsrc", c.c_int),
                ("src", c.POINTER(c.c_int)),
                ("result", cvy_shape),
                ("result_bytes", c.c_int64),
                ("flop", c.c_int64),
                ("weight_bytes", c.c_int64),
                ("can_split", c.c_int)]


class cvy_partition_graph(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("nstages", c.c_int),
                ("nmicro", c.c_int),
                ("nparts", c.c_int),
                ("ndata", c.c_int),
                ("nlayer", c.c_int),
                ("layer", c.POINTER(cvy_partition_layer)),
                ("set_stage", c.c_void_p),
                ("split_channels", c.c_void_p),
                ("message", c.c_char * 256),
                ("owned", c.c_void_p)]


class cvy_partition(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("name", c.c_char_p),
                ("summary", c.c_char_p),
                ("run", c.c_void_p),
                ("split", c.c_void_p)]


class cvy_operator_tensor(c.Structure):
    _fields_ = [("dtype", c.c_int),
                ("ndim", c.c_int),
                ("dim", c.c_int64 * 6),
                ("elems", c.c_int64),
                ("data", c.c_void_p)]


class cvy_operator_option(c.Structure):
    _fields_ = [("name", c.c_char_p),
                ("type", c.c_int),
                ("offset", c.c_size_t),
                ("fallback", c.c_char_p),
                ("valid", c.c_char_p),
                ("help", c.c_char_p)]


class cvy_operator_param(c.Structure):
    _fields_ = [("name", c.c_char_p),
                ("init", c.c_char_p),
                ("init_options", c.c_char_p),
                ("decay", c.c_int)]


class cvy_operator_shapes(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("options", c.c_void_p),
                ("nsrc", c.c_int),
                ("src", c.POINTER(cvy_operator_tensor)),
                ("dst", cvy_shape * 3),
                ("param", cvy_shape * 4),
                ("fan_in", c.c_int64 * 4),
                ("fan_out", c.c_int64 * 4),
                ("message", c.c_char * 256),
                ("user", c.c_void_p)]


class cvy_operator_call(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("options", c.c_void_p),
                ("threads", c.c_int),
                ("training", c.c_int),
                ("nsrc", c.c_int),
                ("src", c.POINTER(cvy_operator_tensor)),
                ("param", c.POINTER(cvy_operator_tensor)),
                ("dst", c.POINTER(cvy_operator_tensor)),
                ("ddst", c.POINTER(cvy_operator_tensor)),
                ("dsrc", c.POINTER(cvy_operator_tensor)),
                ("dparam", c.POINTER(cvy_operator_tensor)),
                ("message", c.c_void_p),
                ("message_bytes", c.c_size_t),
                ("user", c.c_void_p)]


class cvy_operator_cost(c.Structure):
    _fields_ = [("forward_flop", c.c_int64),
                ("backward_flop", c.c_int64)]


class cvy_operator_sample(c.Structure):
    _fields_ = [("src", c.c_char_p),
                ("options", c.c_char_p),
                ("flags", c.c_uint),
                ("int_bound", c.c_int64)]


class cvy_operator(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("name", c.c_char_p),
                ("summary", c.c_char_p),
                ("options_size", c.c_size_t),
                ("options", c.POINTER(cvy_operator_option)),
                ("nsrc_min", c.c_int),
                ("nsrc_max", c.c_int),
                ("integer_src", c.c_uint),
                ("nsaved", c.c_int),
                ("params", c.POINTER(cvy_operator_param)),
                ("splits", c.c_uint),
                ("reads", c.c_uint),
                ("shape", c.c_void_p),
                ("forward", c.c_void_p),
                ("backward", c.c_void_p),
                ("cost", c.c_void_p),
                ("samples", c.POINTER(cvy_operator_sample)),
                ("user", c.c_void_p),
                ("result", cvy_shape)]


class cvy_extension(c.Structure):
    _fields_ = [("abi", c.c_int),
                ("version", c.c_int),
                ("size", c.c_size_t),
                ("name", c.c_char_p),
                ("operators", c.POINTER(c.POINTER(cvy_operator))),
                ("partitions", c.POINTER(c.POINTER(cvy_partition)))]


class cvy_reducer_opts(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("bucket_bytes", c.c_int64),
                ("algorithm", c.c_char_p),
                ("wire", c.c_int),
                ("progress", c.c_char_p),
                ("no_node", c.c_int),
                ("average", c.c_int),
                ("factor", c.c_double),
                ("depth", c.c_int)]


class cvy_schedule_opts(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("lr", c.c_double),
                ("batch", c.c_int64),
                ("epoch_samples", c.c_int64),
                ("epochs", c.c_double),
                ("batch_factor", c.c_double)]


class cvy_test_metric(c.Structure):
    _fields_ = [("name", c.c_char * 48),
                ("value", c.c_double)]


class cvy_test_output(c.Structure):
    _fields_ = [("rmse", c.c_double),
                ("mae", c.c_double),
                ("r2", c.c_double)]


class cvy_test_result(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("checkpoint", c.c_char * 64),
                ("data", c.c_char * 512),
                ("samples", c.c_int64),
                ("loss", c.c_double),
                ("seconds", c.c_double),
                ("nmetric", c.c_int),
                ("metric", c.POINTER(cvy_test_metric)),
                ("nclass", c.c_int),
                ("class_name", c.POINTER(c.c_char_p)),
                ("nconfusion", c.c_int),
                ("confusion", c.POINTER(c.c_double)),
                ("json", c.c_char_p),
                ("owned", c.c_void_p),
                ("noutput", c.c_int),
                ("output", c.POINTER(cvy_test_output)),
                ("note", c.c_char_p)]


class cvy_calibration_result(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("temperature", c.c_double),
                ("samples", c.c_int64),
                ("nll_before", c.c_double),
                ("nll_after", c.c_double),
                ("ece_before", c.c_double),
                ("ece_after", c.c_double)]


class cvy_ensemble_scores(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("samples", c.c_int64),
                ("nmember", c.c_int),
                ("nmetric", c.c_int),
                ("member", c.POINTER(c.c_char_p)),
                ("metric", c.POINTER(c.c_char_p)),
                ("value", c.POINTER(c.c_double)),
                ("owned", c.c_void_p),
                ("mean", c.POINTER(c.c_double)),
                ("spread", c.POINTER(c.c_double)),
                ("json", c.c_char_p)]


class cvy_predict_request(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("target", c.c_char_p),
                ("job", c.POINTER(cvy_job_source)),
                ("data", c.c_char_p),
                ("out", c.c_char_p),
                ("what", c.c_int),
                ("top", c.c_int64),
                ("header", c.c_int),
                ("names", c.c_int),
                ("outputs", c.c_char_p),
                ("weights", c.c_char_p),
                ("member", c.POINTER(c.c_char_p)),
                ("nmember", c.c_int),
                ("passes", c.c_int64),
                ("no_calibration", c.c_int),
                ("samples", c.c_int64)]


class cvy_site_about(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("path", c.c_char_p),
                ("user_path", c.c_char_p),
                ("scheduler", c.c_char_p),
                ("account", c.c_char_p),
                ("queue", c.c_char_p),
                ("parallel_environment", c.c_char_p),
                ("launcher", c.c_char_p),
                ("mpi", c.c_char_p),
                ("launcher_option", c.POINTER(c.c_char_p)),
                ("launcher_options", c.c_int),
                ("module", c.POINTER(c.c_char_p)),
                ("modules", c.c_int),
                ("header", c.POINTER(c.c_char_p)),
                ("headers", c.c_int),
                ("environment", c.POINTER(c.c_char_p)),
                ("variables", c.c_int),
                ("nodes", c.c_int64),
                ("ppn", c.c_int64),
                ("threads", c.c_int64),
                ("signal_s", c.c_int64),
                ("time", c.c_char_p)]


class cvy_reservoir_opts(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("capacity", c.c_int64),
                ("keep", c.c_char_p),
                ("seed", c.c_uint64)]


class cvy_stream_opts(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("role", c.c_char_p),
                ("reservoir", c.c_void_p),
                ("program", c.c_void_p),
                ("queue", c.c_int64),
                ("when_full", c.c_char_p),
                ("wait_s", c.c_double),
                ("lost_s", c.c_double),
                ("independent", c.c_int)]


class cvy_stream_counts(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("pushed", c.c_int64),
                ("delivered", c.c_int64),
                ("dropped", c.c_int64),
                ("waiting", c.c_int64),
                ("received", c.c_int64),
                ("version", c.c_int64),
                ("longest_push_s", c.c_double),
                ("longest_take_s", c.c_double)]


class cvy_bench_opts(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("job", c.POINTER(cvy_job_source)),
                ("model", c.c_char_p),
                ("model_options", c.c_char_p),
                ("input", cvy_shape),
                ("classes", c.c_int64),
                ("batch", c.c_int64),
                ("mode", c.c_int),
                ("dtype", c.c_int),
                ("steps", c.c_int64),
                ("warmup", c.c_int64),
                ("kernels", c.c_char_p),
                ("passes_off", c.c_char_p),
                ("trace", c.c_char_p),
                ("planning", c.c_char_p),
                ("sets", c.POINTER(c.c_char_p)),
                ("nsets", c.c_int),
                ("seconds", c.c_double),
                ("foresee", c.c_int)]


class cvy_bench_result(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("model", c.c_char * 128),
                ("batch", c.c_int64),
                ("mode", c.c_int),
                ("dtype", c.c_int),
                ("input", cvy_shape),
                ("threads", c.c_int),
                ("ranks", c.c_int),
                ("deterministic_shards", c.c_int),
                ("by_clock", c.c_int),
                ("images_per_s", c.c_double),
                ("images_per_s_best", c.c_double),
                ("ms_median", c.c_double),
                ("ms_mean", c.c_double),
                ("ms_sd", c.c_double),
                ("ms_best", c.c_double),
                ("steps", c.c_int64),
                ("gflop", c.c_double),
                ("gflop_per_s", c.c_double),
                ("peak_gflop_per_s", c.c_double),
                ("peak_share", c.c_double),
                ("update", c.c_char * 32),
                ("progress", c.c_char * 16),
                ("bytes_wire", c.c_double),
                ("exposed_comm_ms", c.c_double),
                ("hidden_comm_ms", c.c_double),
                ("wait_slowest_ms", c.c_double),
                ("spread_ms", c.c_double),
                ("parameters", c.c_int64),
                ("macs", c.c_int64),
                ("loss_first", c.c_double),
                ("loss_last", c.c_double),
                ("peak_rss_bytes", c.c_double),
                ("peak_rss_bytes_largest_rank", c.c_double),
                ("arena_bytes", c.c_int64),
                ("plan_s", c.c_double),
                ("predicted_ms", c.c_double),
                ("nodes", c.c_int),
                ("images_per_s_node", c.c_double),
                ("images_per_s_rank", c.c_double),
                ("pipeline", c.c_int),
                ("micro_batches", c.c_int),
                ("exposed_data_ms", c.c_double),
                ("exposed_pipeline_ms", c.c_double),
                ("exposed_tensor_ms", c.c_double),
                ("exposed_spatial_ms", c.c_double),
                ("bubble", c.c_double),
                ("bubble_predicted", c.c_double),
                ("forward_ms", c.c_double),
                ("backward_ms", c.c_double),
                ("update_ms", c.c_double),
                ("communication_ms", c.c_double),
                ("imbalance_ms", c.c_double),
                ("other_ms", c.c_double),
                ("joules_per_image", c.c_double)]


class cvy_check_result(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("model", c.c_char * 128),
                ("batch", c.c_int64),
                ("mode", c.c_int),
                ("dtype", c.c_int),
                ("input", cvy_shape),
                ("threads", c.c_int),
                ("ranks", c.c_int),
                ("deterministic_shards", c.c_int),
                ("by_clock", c.c_int),
                ("against", c.c_char * 32),
                ("kernels", c.c_char * 160),
                ("kernels_plain", c.c_char * 160),
                ("steps", c.c_int),
                ("loss", c.c_double),
                ("loss_plain", c.c_double),
                ("difference_loss", c.c_double),
                ("bound_loss", c.c_double),
                ("difference_later_losses", c.c_double),
                ("difference_weights", c.c_double),
                ("bound_weights", c.c_double),
                ("difference_change", c.c_double),
                ("bound_change", c.c_double),
                ("difference_change_worst", c.c_double),
                ("worst_weight", c.c_char * 128),
                ("agrees", c.c_int)]


class cvy_grids_opts(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("ranks", c.c_int64),
                ("node_ranks", c.c_int64),
                ("threads", c.c_int64),
                ("memory_bytes", c.c_int64),
                ("latency_s", c.c_double),
                ("bytes_per_s", c.c_double),
                ("shown", c.c_int64),
                ("json", c.c_int)]


class cvy_bench_data_opts(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("source", c.c_char_p),
                ("augment", c.c_char_p),
                ("threads", c.c_int),
                ("batch", c.c_int64),
                ("seconds", c.c_double),
                ("shuffle", c.c_char_p)]


class cvy_bench_data_result(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("data", c.c_char * 512),
                ("format", c.c_char * 32),
                ("samples", c.c_int64),
                ("shape", cvy_shape),
                ("shuffle", c.c_char * 16),
                ("threads", c.c_int),
                ("batch", c.c_int64),
                ("seconds", c.c_double),
                ("images", c.c_int64),
                ("images_per_s", c.c_double),
                ("stored_mb_per_s", c.c_double),
                ("output_mb_per_s", c.c_double)]


class cvy_platform_opts(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("file", c.c_char_p),
                ("name", c.c_char_p),
                ("text", c.c_char_p),
                ("model", c.c_char_p),
                ("latency_factor", c.c_double),
                ("bandwidth_factor", c.c_double)]


class cvy_platform(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("nodes", c.c_int64),
                ("images_per_s", c.c_double),
                ("gflop_per_s", c.c_double),
                ("add_bytes_per_s", c.c_double),
                ("cores", c.c_int64),
                ("message_s", c.c_double),
                ("summary", c.c_char * 160),
                ("xml", c.c_void_p),
                ("memory_bytes_per_s", c.c_double),
                ("shared_bandwidth", c.c_double),
                ("switch_nodes", c.c_int64)]


class cvy_operators_opts(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("only", c.c_char_p),
                ("line", c.c_void_p),
                ("user", c.c_void_p),
                ("sources", c.c_char_p),
                ("values", c.POINTER(c.POINTER(c.c_double)))]


class cvy_operators_result(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("operators", c.c_int),
                ("checks", c.c_int),
                ("failed", c.c_int)]


class cvy_sweep_opts(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("out", c.c_char_p),
                ("resume", c.c_int),
                ("sets", c.POINTER(c.c_char_p)),
                ("nsets", c.c_int),
                ("control", c.c_void_p),
                ("end_time", c.c_double),
                ("line", c.c_void_p),
                ("user", c.c_void_p),
                ("retry", c.c_int),
                ("end_source", c.c_char_p)]


class cvy_sweep_result(c.Structure):
    _fields_ = [("size", c.c_size_t),
                ("trials", c.c_int64),
                ("scored", c.c_int64),
                ("failed", c.c_int64),
                ("best", c.c_int64),
                ("score", c.c_double),
                ("idle_ranks", c.c_int64)]


FUNCTIONS = {  # name: (type of the result, types of the arguments); c_int may be a status: STATUS has those functions
    "cvy_error_text": (c.c_char_p, []),
    "cvy_status_text": (c.c_char_p, [c.c_int]),
    "cvy_version": (c.c_char_p, []),
    "cvy_version_number": (c.c_int, []),
    "cvy_memory_bytes": (c.c_int64, []),
    "cvy_dtype_bytes": (c.c_size_t, [c.c_int]),
    "cvy_dtype_text": (c.c_char_p, [c.c_int]),
    "cvy_dtype_parse": (c.c_int, [c.c_char_p, c.POINTER(c.c_int)]),
    "cvy_context_create": (c.c_int, [c.POINTER(cvy_context_opts), c.POINTER(c.c_void_p)]),
    "cvy_context_destroy": (None, [c.POINTER(c.c_void_p)]),
    "cvy_context_rank": (c.c_int, [c.c_void_p]),
    "cvy_context_nranks": (c.c_int, [c.c_void_p]),
    "cvy_context_threads": (c.c_int, [c.c_void_p]),
    "cvy_build_info": (c.c_char_p, []),
    "cvy_output_kind_text": (c.c_char_p, [c.c_int]),
    "cvy_model_create": (c.c_int, [c.c_char_p, c.POINTER(c.c_void_p)]),
    "cvy_model_zoo": (c.c_int, [c.c_char_p, c.c_char_p, c.POINTER(cvy_shape), c.c_int64, c.POINTER(c.c_void_p)]),
    "cvy_model_from_file": (c.c_int, [c.c_char_p, c.c_char_p, c.POINTER(c.c_void_p)]),
    "cvy_model_destroy": (None, [c.POINTER(c.c_void_p)]),
    "cvy_model_use_context": (c.c_int, [c.c_void_p, c.c_void_p]),
    "cvy_model_add_input": (c.c_int, [c.c_void_p, c.c_char_p, c.c_int, c.POINTER(cvy_shape)]),
    "cvy_model_add": (c.c_int, [c.c_void_p, c.c_char_p, c.c_char_p, c.c_char_p, c.c_char_p]),
    "cvy_model_set_stage": (c.c_int, [c.c_void_p, c.c_char_p, c.c_int64]),
    "cvy_model_output": (c.c_char_p, [c.c_void_p]),
    "cvy_models_list": (c.c_int, [c.POINTER(c.c_void_p)]),
    "cvy_layers_list": (c.c_int, [c.POINTER(c.c_void_p)]),
    "cvy_text_release": (None, [c.POINTER(c.c_void_p)]),
    "cvy_program_opts_set": (c.c_int, [c.POINTER(cvy_program_opts), c.c_char_p, c.c_char_p]),
    "cvy_program_create": (c.c_int, [c.c_void_p, c.POINTER(cvy_program_opts), c.POINTER(c.c_void_p)]),
    "cvy_program_destroy": (None, [c.POINTER(c.c_void_p)]),
    "cvy_program_add_training": (c.c_int, [c.c_void_p, c.c_void_p, c.c_int64, c.POINTER(cvy_training_opts), c.POINTER(c.c_int)]),
    "cvy_program_add_forward": (c.c_int, [c.c_void_p, c.c_void_p, c.c_int64, c.c_char_p, c.POINTER(c.c_int)]),
    "cvy_program_plan": (c.c_int, [c.c_void_p]),
    "cvy_program_rows": (c.c_int64, [c.c_void_p, c.c_int]),
    "cvy_program_first_row": (c.c_int64, [c.c_void_p, c.c_int]),
    "cvy_program_feed": (c.c_void_p, [c.c_void_p, c.c_int, c.c_char_p]),
    "cvy_program_set_rows": (c.c_int, [c.c_void_p, c.c_int, c.c_int64]),
    "cvy_program_samples": (c.c_int64, [c.c_void_p, c.c_int]),
    "cvy_program_write_input": (c.c_int, [c.c_void_p, c.c_int, c.c_char_p, c.c_int, c.c_void_p, c.c_int64]),
    "cvy_program_step": (c.c_int, [c.c_void_p, c.c_int, c.c_double]),
    "cvy_program_flush": (c.c_int, [c.c_void_p]),
    "cvy_program_loss": (c.c_int, [c.c_void_p, c.c_int, c.c_char_p, c.POINTER(c.c_double)]),
    "cvy_program_output": (c.c_int, [c.c_void_p, c.c_int, c.c_char_p, c.POINTER(c.c_void_p), c.POINTER(cvy_shape)]),
    "cvy_program_read_output": (c.c_int, [c.c_void_p, c.c_int, c.c_char_p, c.c_int, c.c_void_p, c.c_int64]),
    "cvy_program_write_block": (c.c_int, [c.c_void_p, c.c_int, c.c_char_p, c.c_int, c.c_void_p, c.POINTER(cvy_shape), c.POINTER(c.c_int64)]),
    "cvy_program_read_block": (c.c_int, [c.c_void_p, c.c_int, c.c_char_p, c.c_int, c.c_void_p, c.POINTER(cvy_shape), c.POINTER(c.c_int64)]),
    "cvy_program_get": (c.c_int, [c.c_void_p, c.c_char_p, c.c_void_p, c.c_int64]),
    "cvy_program_set": (c.c_int, [c.c_void_p, c.c_char_p, c.c_void_p, c.c_int64]),
    "cvy_program_part": (c.c_int, [c.c_void_p, c.c_int, c.c_char_p, c.POINTER(cvy_shape), c.POINTER(c.c_int64)]),
    "cvy_program_variable": (c.c_int, [c.c_void_p, c.c_int, c.POINTER(c.c_char_p), c.POINTER(cvy_shape)]),
    "cvy_program_save": (c.c_int, [c.c_void_p, c.c_char_p]),
    "cvy_program_load": (c.c_int, [c.c_void_p, c.c_char_p]),
    "cvy_program_print": (c.c_int, [c.c_void_p, c.c_int, c.c_char_p, c.POINTER(c.c_void_p)]),
    "cvy_program_bytes": (c.c_int64, [c.c_void_p]),
    "cvy_checkpoint_write": (c.c_int, [c.c_void_p, c.POINTER(cvy_checkpoint_opts)]),
    "cvy_checkpoint_read": (c.c_int, [c.c_void_p, c.c_char_p, c.c_char_p, c.POINTER(cvy_checkpoint_about)]),
    "cvy_checkpoint_list": (c.c_int, [c.c_char_p, c.c_int, c.POINTER(cvy_checkpoint_entries)]),
    "cvy_checkpoint_entries_release": (None, [c.POINTER(cvy_checkpoint_entries)]),
    "cvy_run_convert": (c.c_int, [c.c_void_p, c.POINTER(cvy_convert_request), c.POINTER(c.c_void_p)]),
    "cvy_run_export": (c.c_int, [c.c_char_p, c.c_char_p, c.c_char_p, c.c_int, c.POINTER(c.c_int64), c.POINTER(c.c_void_p)]),
    "cvy_run_formats": (c.c_int, [c.POINTER(c.c_void_p)]),
    "cvy_data_open": (c.c_int, [c.c_char_p, c.POINTER(cvy_data_opts), c.POINTER(c.c_void_p)]),
    "cvy_data_split": (c.c_int, [c.c_void_p, c.c_double, c.c_uint64, c.c_int, c.POINTER(c.c_void_p)]),
    "cvy_data_destroy": (None, [c.POINTER(c.c_void_p)]),
    "cvy_data_describe": (c.c_int, [c.c_void_p, c.POINTER(cvy_data_about)]),
    "cvy_data_field": (c.c_int, [c.c_void_p, c.c_int, c.POINTER(c.c_char_p), c.POINTER(c.c_int), c.POINTER(cvy_shape)]),
    "cvy_data_class": (c.c_char_p, [c.c_void_p, c.c_int64]),
    "cvy_data_loader_create": (c.c_int, [c.c_void_p, c.c_void_p, c.POINTER(cvy_data_loader_opts), c.POINTER(c.c_void_p)]),
    "cvy_data_loader_destroy": (None, [c.POINTER(c.c_void_p)]),
    "cvy_data_loader_next": (c.c_int, [c.c_void_p, c.POINTER(cvy_data_batch)]),
    "cvy_data_loader_steps": (c.c_int64, [c.c_void_p]),
    "cvy_program_fill": (c.c_int, [c.c_void_p, c.c_int, c.POINTER(cvy_data_batch)]),
    "cvy_run_read_job": (c.c_int, [c.POINTER(cvy_job_source), c.c_int, c.POINTER(cvy_job_about)]),
    "cvy_run_job_value": (c.c_int, [c.POINTER(cvy_job_source), c.c_char_p, c.POINTER(c.c_void_p)]),
    "cvy_run_keys": (c.c_int, [c.POINTER(c.c_void_p)]),
    "cvy_run_new_job": (c.c_int, [c.c_char_p, c.c_char_p, c.POINTER(c.c_void_p)]),
    "cvy_run_import": (c.c_int, [c.c_char_p, c.POINTER(cvy_import_opts), c.POINTER(c.c_void_p)]),
    "cvy_run_model_job": (c.c_int, [c.c_char_p, c.POINTER(c.c_void_p)]),
    "cvy_train_control_create": (c.c_int, [c.POINTER(c.c_void_p)]),
    "cvy_train_control_destroy": (None, [c.POINTER(c.c_void_p)]),
    "cvy_train_control_request": (None, [c.c_void_p, c.c_int]),
    "cvy_train_control_is_stopping": (c.c_int, [c.c_void_p]),
    "cvy_train_control_longest_s": (c.c_double, [c.c_void_p]),
    "cvy_run_train": (c.c_int, [c.c_void_p, c.POINTER(cvy_job_source), c.POINTER(cvy_train_opts), c.POINTER(cvy_train_result)]),
    "cvy_run_doctor": (c.c_int, [c.c_void_p, c.POINTER(cvy_doctor_opts), c.POINTER(cvy_doctor_result)]),
    "cvy_doctor_result_json": (c.c_int, [c.POINTER(cvy_doctor_result), c.POINTER(c.c_void_p)]),
    "cvy_doctor_result_lines": (c.c_int, [c.POINTER(cvy_doctor_result), c.POINTER(c.c_void_p)]),
    "cvy_doctor_result_release": (None, [c.POINTER(cvy_doctor_result)]),
    "cvy_run_selftest": (c.c_int, [c.c_void_p, c.POINTER(cvy_selftest_opts), c.POINTER(cvy_selftest_result)]),
    "cvy_selftest_result_json": (c.c_int, [c.POINTER(cvy_selftest_result), c.POINTER(c.c_void_p)]),
    "cvy_selftest_result_lines": (c.c_int, [c.POINTER(cvy_selftest_result), c.POINTER(c.c_void_p)]),
    "cvy_selftest_result_release": (None, [c.POINTER(cvy_selftest_result)]),
    "cvy_run_study": (c.c_int, [c.POINTER(cvy_study_opts), c.POINTER(cvy_study_result)]),
    "cvy_study_nodes": (c.c_int, [c.POINTER(cvy_study_opts), c.POINTER(c.c_int64), c.c_int, c.POINTER(c.c_int)]),
    "cvy_report_study": (c.c_int, [c.c_char_p]),
    "cvy_report_study_compare": (c.c_int, [c.c_char_p, c.c_char_p, c.c_char_p, c.POINTER(c.c_int)]),
    "cvy_run_tune": (c.c_int, [c.POINTER(cvy_tune_opts), c.POINTER(cvy_tune_result)]),
    "cvy_profile_read": (c.c_int, [c.c_char_p, c.POINTER(cvy_profile)]),
    "cvy_run_summarize": (c.c_int, [c.c_char_p, c.POINTER(cvy_run_summary)]),
    "cvy_run_list": (c.c_int, [c.c_char_p, c.POINTER(cvy_run_list_result)]),
    "cvy_run_list_result_json": (c.c_int, [c.POINTER(cvy_run_list_result), c.POINTER(c.c_void_p)]),
    "cvy_run_list_result_lines": (c.c_int, [c.POINTER(cvy_run_list_result), c.POINTER(c.c_void_p)]),
    "cvy_run_list_result_release": (None, [c.POINTER(cvy_run_list_result)]),
    "cvy_run_inspect": (c.c_int, [c.c_char_p, c.c_int, c.POINTER(c.c_void_p)]),
    "cvy_run_verify": (c.c_int, [c.c_char_p, c.POINTER(c.c_int), c.POINTER(c.c_void_p)]),
    "cvy_metric_open": (c.c_int, [c.c_char_p, c.POINTER(cvy_shape), c.POINTER(c.c_void_p)]),
    "cvy_metric_add_rows": (c.c_int, [c.c_void_p, c.POINTER(cvy_metric_batch)]),
    "cvy_metric_reduce": (c.c_int, [c.c_void_p, c.c_void_p, c.POINTER(c.c_double)]),
    "cvy_metric_higher_is_better": (c.c_int, [c.c_void_p]),
    "cvy_metric_destroy": (None, [c.POINTER(c.c_void_p)]),
    "cvy_network_open": (c.c_int, [c.c_void_p, c.c_char_p, c.POINTER(cvy_network_opts), c.POINTER(c.c_void_p)]),
    "cvy_network_destroy": (None, [c.POINTER(c.c_void_p)]),
    "cvy_network_describe": (c.c_int, [c.c_void_p, c.POINTER(cvy_network_about)]),
    "cvy_network_input": (c.c_int, [c.c_void_p, c.c_int, c.POINTER(c.c_char_p), c.POINTER(c.c_int), c.POINTER(cvy_shape)]),
    "cvy_network_output": (c.c_int, [c.c_void_p, c.c_int, c.POINTER(c.c_char_p), c.POINTER(cvy_shape)]),
    "cvy_network_output_kind": (c.c_int, [c.c_void_p, c.c_int, c.POINTER(c.c_int)]),
    "cvy_network_class": (c.c_char_p, [c.c_void_p, c.c_int64]),
    "cvy_network_apply": (c.c_int, [c.c_void_p, c.c_int64, c.POINTER(cvy_network_in), c.c_int, c.POINTER(cvy_network_out), c.c_int]),
    "cvy_network_check_input": (c.c_int, [c.c_void_p, c.c_char_p, c.POINTER(c.c_void_p)]),
    "cvy_shared_network_create": (c.c_int, [c.c_void_p, c.c_void_p, c.POINTER(c.c_void_p)]),
    "cvy_shared_network_destroy": (None, [c.POINTER(c.c_void_p)]),
    "cvy_shared_network_apply": (c.c_int, [c.c_void_p, c.c_int64, c.POINTER(cvy_network_in), c.c_int, c.POINTER(cvy_network_out), c.c_int]),
    "cvy_network_export": (c.c_int, [c.c_void_p, c.c_char_p, c.POINTER(cvy_network_export_opts), c.POINTER(c.c_void_p)]),
    "cvy_context_load_library": (c.c_int, [c.c_void_p, c.c_char_p]),
    "cvy_context_add_operator": (c.c_int, [c.c_void_p, c.POINTER(cvy_operator)]),
    "cvy_reducer_create": (c.c_int, [c.c_void_p, c.POINTER(cvy_reducer_opts), c.POINTER(c.c_void_p)]),
    "cvy_reducer_destroy": (None, [c.POINTER(c.c_void_p)]),
    "cvy_reducer_add": (c.c_int, [c.c_void_p, c.c_char_p, c.c_int64, c.c_int, c.POINTER(c.c_int)]),
    "cvy_reducer_ready": (c.c_int, [c.c_void_p]),
    "cvy_reducer_buffer": (c.c_void_p, [c.c_void_p, c.c_int]),
    "cvy_reducer_sum": (c.c_void_p, [c.c_void_p, c.c_int]),
    "cvy_reducer_start": (c.c_int, [c.c_void_p, c.c_int]),
    "cvy_reducer_progress": (c.c_int, [c.c_void_p]),
    "cvy_reducer_wait": (c.c_int, [c.c_void_p, c.c_int]),
    "cvy_reducer_broadcast": (c.c_int, [c.c_void_p, c.c_int]),
    "cvy_context_broadcast": (c.c_int, [c.c_void_p, c.c_void_p, c.c_size_t, c.c_int]),
    "cvy_report_write": (c.c_int, [c.c_char_p]),
    "cvy_report_json": (c.c_int, [c.c_char_p, c.POINTER(c.c_void_p)]),
    "cvy_report_compare": (c.c_int, [c.POINTER(c.c_char_p), c.c_int, c.c_char_p]),
    "cvy_report_ensemble": (c.c_int, [c.c_char_p]),
    "cvy_report_sweep": (c.c_int, [c.c_char_p]),
    "cvy_schedule_open": (c.c_int, [c.c_char_p, c.POINTER(cvy_schedule_opts), c.POINTER(c.c_void_p)]),
    "cvy_schedule_lr": (c.c_double, [c.c_void_p, c.c_double]),
    "cvy_schedule_destroy": (None, [c.POINTER(c.c_void_p)]),
    "cvy_run_test": (c.c_int, [c.c_void_p, c.c_char_p, c.POINTER(cvy_job_source), c.c_char_p, c.POINTER(cvy_test_result)]),
    "cvy_test_result_json": (c.c_int, [c.POINTER(cvy_test_result), c.POINTER(c.c_void_p)]),
    "cvy_test_result_release": (None, [c.POINTER(cvy_test_result)]),
    "cvy_run_calibrate": (c.c_int, [c.c_void_p, c.c_char_p, c.c_char_p, c.POINTER(cvy_calibration_result)]),
    "cvy_run_test_ensemble": (c.c_int, [c.c_void_p, c.POINTER(c.c_char_p), c.c_int, c.c_char_p, c.c_int, c.POINTER(cvy_ensemble_scores)]),
    "cvy_ensemble_scores_json": (c.c_int, [c.POINTER(cvy_ensemble_scores), c.POINTER(c.c_void_p)]),
    "cvy_is_ensemble": (c.c_int, [c.c_char_p]),
    "cvy_ensemble_scores_release": (None, [c.POINTER(cvy_ensemble_scores)]),
    "cvy_run_checkpoint": (c.c_int, [c.c_char_p, c.POINTER(c.c_void_p)]),
    "cvy_run_predict": (c.c_int, [c.c_void_p, c.POINTER(cvy_predict_request)]),
    "cvy_site_open": (c.c_int, [c.c_char_p, c.POINTER(c.c_void_p)]),
    "cvy_site_destroy": (None, [c.POINTER(c.c_void_p)]),
    "cvy_site_describe": (c.c_int, [c.c_void_p, c.POINTER(cvy_site_about)]),
    "cvy_reservoir_create": (c.c_int, [c.POINTER(cvy_reservoir_opts), c.POINTER(c.c_void_p)]),
    "cvy_reservoir_destroy": (None, [c.POINTER(c.c_void_p)]),
    "cvy_reservoir_add_field": (c.c_int, [c.c_void_p, c.c_char_p, c.c_int, c.POINTER(cvy_shape)]),
    "cvy_reservoir_field": (c.c_int, [c.c_void_p, c.c_int, c.POINTER(c.c_char_p), c.POINTER(c.c_int), c.POINTER(cvy_shape)]),
    "cvy_reservoir_put": (c.c_int, [c.c_void_p, c.c_char_p, c.c_int, c.c_void_p, c.c_int64]),
    "cvy_reservoir_push": (c.c_int, [c.c_void_p]),
    "cvy_reservoir_held": (c.c_int64, [c.c_void_p]),
    "cvy_reservoir_seen": (c.c_int64, [c.c_void_p]),
    "cvy_reservoir_draw": (c.c_int, [c.c_void_p, c.c_void_p, c.c_int]),
    "cvy_reservoir_set_losses": (c.c_int, [c.c_void_p, c.POINTER(c.c_double), c.c_int64]),
    "cvy_reservoir_bytes": (c.c_int64, [c.c_void_p]),
    "cvy_reservoir_save": (c.c_int, [c.c_void_p, c.c_void_p, c.c_int64]),
    "cvy_reservoir_load": (c.c_int, [c.c_void_p, c.c_void_p, c.c_int64]),
    "cvy_stream_create": (c.c_int, [c.c_void_p, c.POINTER(cvy_stream_opts), c.POINTER(c.c_void_p)]),
    "cvy_stream_destroy": (None, [c.POINTER(c.c_void_p)]),
    "cvy_stream_field": (c.c_int, [c.c_void_p, c.c_int, c.POINTER(c.c_char_p), c.POINTER(c.c_int), c.POINTER(cvy_shape)]),
    "cvy_stream_put": (c.c_int, [c.c_void_p, c.c_char_p, c.c_int, c.c_void_p, c.c_int64]),
    "cvy_stream_push": (c.c_int, [c.c_void_p]),
    "cvy_stream_flush": (c.c_int, [c.c_void_p, c.c_double]),
    "cvy_stream_take": (c.c_int, [c.c_void_p, c.POINTER(c.c_int64)]),
    "cvy_stream_receive": (c.c_int, [c.c_void_p]),
    "cvy_stream_publish": (c.c_int, [c.c_void_p]),
    "cvy_stream_get_counts": (c.c_int, [c.c_void_p, c.POINTER(cvy_stream_counts)]),
    "cvy_run_bench": (c.c_int, [c.c_void_p, c.POINTER(cvy_bench_opts), c.POINTER(cvy_bench_result)]),
    "cvy_bench_result_json": (c.c_int, [c.POINTER(cvy_bench_result), c.POINTER(c.c_void_p)]),
    "cvy_bench_result_lines": (c.c_int, [c.POINTER(cvy_bench_result), c.POINTER(c.c_void_p)]),
    "cvy_run_time": (c.c_int, [c.c_void_p, c.POINTER(cvy_bench_opts), c.c_char_p, c.POINTER(c.c_void_p)]),
    "cvy_run_check": (c.c_int, [c.c_void_p, c.POINTER(cvy_bench_opts), c.c_char_p, c.POINTER(cvy_check_result)]),
    "cvy_check_result_json": (c.c_int, [c.POINTER(cvy_check_result), c.POINTER(c.c_void_p)]),
    "cvy_check_result_lines": (c.c_int, [c.POINTER(cvy_check_result), c.POINTER(c.c_void_p)]),
    "cvy_run_plan": (c.c_int, [c.c_void_p, c.POINTER(cvy_job_source), c.c_char_p, c.c_char_p, c.POINTER(c.c_void_p)]),
    "cvy_run_bench_plan": (c.c_int, [c.c_void_p, c.POINTER(cvy_bench_opts), c.c_char_p, c.POINTER(c.c_void_p)]),
    "cvy_run_plan_grids": (c.c_int, [c.c_void_p, c.POINTER(cvy_bench_opts), c.POINTER(cvy_grids_opts), c.POINTER(c.c_void_p)]),
    "cvy_run_bench_data": (c.c_int, [c.POINTER(cvy_bench_data_opts), c.POINTER(cvy_bench_data_result)]),
    "cvy_bench_data_result_json": (c.c_int, [c.POINTER(cvy_bench_data_result), c.POINTER(c.c_void_p)]),
    "cvy_bench_data_result_lines": (c.c_int, [c.POINTER(cvy_bench_data_result), c.POINTER(c.c_void_p)]),
    "cvy_run_platform": (c.c_int, [c.POINTER(cvy_platform_opts), c.POINTER(cvy_platform)]),
    "cvy_run_check_operators": (c.c_int, [c.c_void_p, c.c_char_p, c.POINTER(cvy_operators_opts), c.POINTER(cvy_operators_result)]),
    "cvy_run_sweep": (c.c_int, [c.c_void_p, c.c_char_p, c.POINTER(cvy_sweep_opts), c.POINTER(cvy_sweep_result)]),
    "cvy_sweep_table": (c.c_int, [c.c_char_p, c.c_int, c.POINTER(c.c_void_p)]),
    "cvy_mpi_prepare": (None, []),
    "cvy_context_create_mpi_fortran": (c.c_int, [c.c_int, c.POINTER(cvy_context_opts), c.POINTER(c.c_void_p)]),
}

STATUS = {
    "cvy_dtype_parse",
    "cvy_context_create",
    "cvy_model_create",
    "cvy_model_zoo",
    "cvy_model_from_file",
    "cvy_model_use_context",
    "cvy_model_add_input",
    "cvy_model_add",
    "cvy_model_set_stage",
    "cvy_models_list",
    "cvy_layers_list",
    "cvy_program_opts_set",
    "cvy_program_create",
    "cvy_program_add_training",
    "cvy_program_add_forward",
    "cvy_program_plan",
    "cvy_program_set_rows",
    "cvy_program_write_input",
    "cvy_program_step",
    "cvy_program_flush",
    "cvy_program_loss",
    "cvy_program_output",
    "cvy_program_read_output",
    "cvy_program_write_block",
    "cvy_program_read_block",
    "cvy_program_get",
    "cvy_program_set",
    "cvy_program_part",
    "cvy_program_variable",
    "cvy_program_save",
    "cvy_program_load",
    "cvy_program_print",
    "cvy_checkpoint_write",
    "cvy_checkpoint_read",
    "cvy_checkpoint_list",
    "cvy_run_convert",
    "cvy_run_export",
    "cvy_run_formats",
    "cvy_data_open",
    "cvy_data_split",
    "cvy_data_describe",
    "cvy_data_field",
    "cvy_data_loader_create",
    "cvy_data_loader_next",
    "cvy_program_fill",
    "cvy_run_read_job",
    "cvy_run_job_value",
    "cvy_run_keys",
    "cvy_run_new_job",
    "cvy_run_import",
    "cvy_run_model_job",
    "cvy_train_control_create",
    "cvy_run_train",
    "cvy_run_doctor",
    "cvy_doctor_result_json",
    "cvy_doctor_result_lines",
    "cvy_run_selftest",
    "cvy_selftest_result_json",
    "cvy_selftest_result_lines",
    "cvy_run_study",
    "cvy_study_nodes",
    "cvy_report_study",
    "cvy_report_study_compare",
    "cvy_run_tune",
    "cvy_profile_read",
    "cvy_run_summarize",
    "cvy_run_list",
    "cvy_run_list_result_json",
    "cvy_run_list_result_lines",
    "cvy_run_inspect",
    "cvy_run_verify",
    "cvy_metric_open",
    "cvy_metric_add_rows",
    "cvy_metric_reduce",
    "cvy_network_open",
    "cvy_network_describe",
    "cvy_network_input",
    "cvy_network_output",
    "cvy_network_output_kind",
    "cvy_network_apply",
    "cvy_network_check_input",
    "cvy_shared_network_create",
    "cvy_shared_network_apply",
    "cvy_network_export",
    "cvy_context_load_library",
    "cvy_context_add_operator",
    "cvy_reducer_create",
    "cvy_reducer_add",
    "cvy_reducer_ready",
    "cvy_reducer_start",
    "cvy_reducer_progress",
    "cvy_reducer_wait",
    "cvy_reducer_broadcast",
    "cvy_context_broadcast",
    "cvy_report_write",
    "cvy_report_json",
    "cvy_report_compare",
    "cvy_report_ensemble",
    "cvy_report_sweep",
    "cvy_schedule_open",
    "cvy_run_test",
    "cvy_test_result_json",
    "cvy_run_calibrate",
    "cvy_run_test_ensemble",
    "cvy_ensemble_scores_json",
    "cvy_run_checkpoint",
    "cvy_run_predict",
    "cvy_site_open",
    "cvy_site_describe",
    "cvy_reservoir_create",
    "cvy_reservoir_add_field",
    "cvy_reservoir_field",
    "cvy_reservoir_put",
    "cvy_reservoir_push",
    "cvy_reservoir_draw",
    "cvy_reservoir_set_losses",
    "cvy_reservoir_save",
    "cvy_reservoir_load",
    "cvy_stream_create",
    "cvy_stream_field",
    "cvy_stream_put",
    "cvy_stream_push",
    "cvy_stream_flush",
    "cvy_stream_take",
    "cvy_stream_receive",
    "cvy_stream_publish",
    "cvy_stream_get_counts",
    "cvy_run_bench",
    "cvy_bench_result_json",
    "cvy_bench_result_lines",
    "cvy_run_time",
    "cvy_run_check",
    "cvy_check_result_json",
    "cvy_check_result_lines",
    "cvy_run_plan",
    "cvy_run_bench_plan",
    "cvy_run_plan_grids",
    "cvy_run_bench_data",
    "cvy_bench_data_result_json",
    "cvy_bench_data_result_lines",
    "cvy_run_platform",
    "cvy_run_check_operators",
    "cvy_run_sweep",
    "cvy_sweep_table",
    "cvy_context_create_mpi_fortran",
}
