! The C API of convoy for Fortran: made by tools/make_bindings.py from include/convoy/. Do not edit it.
!
! The headers say what each function does. A status is an integer(c_int); a text is a pointer to characters that end
! with c_null_char; what a header calls NULL is c_null_ptr, or an optional argument that is left out. The member `size`
! of options must be set: options%size = c_sizeof(options). The module convoy is easier to use.
!
! SPDX-License-Identifier: BSD-3-Clause
module convoy_c
  use, intrinsic :: iso_c_binding
  implicit none
  public

  integer(c_int), parameter :: CVY_VERSION_MAJOR = 0
  integer(c_int), parameter :: CVY_VERSION_MINOR = 2
  integer(c_int), parameter :: CVY_VERSION_PATCH = 0
  integer(c_int), parameter :: CVY_NDIM_MAX = 6
  integer(c_int), parameter :: CVY_OK = 0
  integer(c_int), parameter :: CVY_END = 1
  integer(c_int), parameter :: CVY_NOT_APPLICABLE = 2
  integer(c_int), parameter :: CVY_STOPPED = 4
  integer(c_int), parameter :: CVY_E_ARGUMENT = -1
  integer(c_int), parameter :: CVY_E_SHAPE = -2
  integer(c_int), parameter :: CVY_E_CONFIG = -3
  integer(c_int), parameter :: CVY_E_IO = -4
  integer(c_int), parameter :: CVY_E_FORMAT = -5
  integer(c_int), parameter :: CVY_E_MEMORY = -6
  integer(c_int), parameter :: CVY_E_COMM = -7
  integer(c_int), parameter :: CVY_E_UNSUPPORTED = -8
  integer(c_int), parameter :: CVY_E_NUMERIC = -9
  integer(c_int), parameter :: CVY_E_INTERNAL = -10
  integer(c_int), parameter :: CVY_E_DISAGREE = -11
  integer(c_int), parameter :: CVY_DTYPE_F32 = 0
  integer(c_int), parameter :: CVY_DTYPE_F64 = 1
  integer(c_int), parameter :: CVY_DTYPE_I64 = 2
  integer(c_int), parameter :: CVY_DTYPE_I32 = 3
  integer(c_int), parameter :: CVY_DTYPE_U8 = 4
  integer(c_int), parameter :: CVY_DTYPE_BF16 = 5
  integer(c_int), parameter :: CVY_DTYPE_COUNT = 6
  integer(c_int), parameter :: CVY_LOG_ERROR = 0
  integer(c_int), parameter :: CVY_LOG_WARN = 1
  integer(c_int), parameter :: CVY_LOG_INFO = 2
  integer(c_int), parameter :: CVY_LOG_DEBUG = 3
  integer(c_int), parameter :: CVY_OUTPUT_VALUES = 0
  integer(c_int), parameter :: CVY_OUTPUT_LOGITS = 1
  integer(c_int), parameter :: CVY_OUTPUT_LOG_PROBABILITIES = 2
  integer(c_int), parameter :: CVY_OUTPUT_PROBABILITIES = 3
  integer(c_int), parameter :: CVY_OUTPUT_YES_LOGITS = 4
  integer(c_int), parameter :: CVY_OUTPUT_YES_PROBABILITIES = 5
  integer(c_int), parameter :: CVY_UPDATE_SYNC = 0
  integer(c_int), parameter :: CVY_UPDATE_DELAYED = 1
  integer(c_int), parameter :: CVY_UPDATE_LOCAL = 2
  integer(c_int), parameter :: CVY_UPDATE_PARAMETER_SERVER = 3
  integer(c_int), parameter :: CVY_UPDATE_ZERO1 = 4
  integer(c_int), parameter :: CVY_TRAIN_STOP = 0
  integer(c_int), parameter :: CVY_TRAIN_SAVE = 1
  integer(c_int), parameter :: CVY_SELFTEST_PASSED = 0
  integer(c_int), parameter :: CVY_SELFTEST_FAILED = 1
  integer(c_int), parameter :: CVY_SELFTEST_SKIPPED = 2
  integer(c_int), parameter :: CVY_PROFILE_KEYS = 32
  integer(c_int), parameter :: CVY_RUN_STATE_UNKNOWN = 0
  integer(c_int), parameter :: CVY_RUN_STATE_RUNNING = 1
  integer(c_int), parameter :: CVY_RUN_STATE_STOPPED = 2
  integer(c_int), parameter :: CVY_RUN_STATE_FINISHED = 3
  integer(c_int), parameter :: CVY_RUN_STATE_EARLY_STOP = 4
  integer(c_int), parameter :: CVY_RUN_STATE_FAILED = 5
  integer(c_int), parameter :: CVY_RUN_STATE_KILLED = 6
  integer(c_int), parameter :: CVY_EXTENSION_ABI = 1
  integer(c_int), parameter :: CVY_OPERATOR_SOURCES_MAX = 4
  integer(c_int), parameter :: CVY_OPERATOR_PARAMS_MAX = 4
  integer(c_int), parameter :: CVY_OPERATOR_SAVED_MAX = 2
  integer(c_int), parameter :: CVY_OPERATOR_INT = 0
  integer(c_int), parameter :: CVY_OPERATOR_REAL = 1
  integer(c_int), parameter :: CVY_OPERATOR_BOOL = 2
  integer(c_int), parameter :: CVY_OPERATOR_CHOICE = 3
  integer(c_int), parameter :: CVY_OPERATOR_SPLIT_SAMPLES = 1
  integer(c_int), parameter :: CVY_OPERATOR_SPLIT_CHANNELS = 2
  integer(c_int), parameter :: CVY_OPERATOR_SPLIT_OUTPUTS = 4
  integer(c_int), parameter :: CVY_OPERATOR_SPLIT_INPUTS = 8
  integer(c_int), parameter :: CVY_OPERATOR_SPLIT_SPACE = 16
  integer(c_int), parameter :: CVY_OPERATOR_READS_SOURCES = 1
  integer(c_int), parameter :: CVY_OPERATOR_READS_RESULT = 2
  integer(c_int), parameter :: CVY_OPERATOR_SAMPLE_POSITIVE = 1
  integer(c_int), parameter :: CVY_OPERATOR_SAMPLE_NO_GRADIENT = 2
  integer(c_int), parameter :: CVY_REDUCER_ALL = -1
  integer(c_int), parameter :: CVY_REPORT_RUNS_MAX = 8
  integer(c_int), parameter :: CVY_PREDICT_OUTPUTS = 0
  integer(c_int), parameter :: CVY_PREDICT_PROBABILITIES = 1
  integer(c_int), parameter :: CVY_PREDICT_CLASSES = 2
  integer(c_int), parameter :: CVY_BENCH_TRAIN = 0
  integer(c_int), parameter :: CVY_BENCH_FORWARD = 1
  integer(c_int), parameter :: CVY_BENCH_FORWARD_BACKWARD = 2

  type, bind(c) :: cvy_shape
    integer(c_int) :: ndim = 0
    integer(c_int64_t) :: dim(6) = 0
  end type cvy_shape

  type, bind(c) :: cvy_context_opts
    integer(c_size_t) :: size = 0
    integer(c_int) :: threads = 0
    integer(c_int) :: log_level = 0
    type(c_funptr) :: log = c_null_funptr
    type(c_ptr) :: log_user = c_null_ptr
    type(c_funptr) :: fatal = c_null_funptr
    type(c_ptr) :: fatal_user = c_null_ptr
    type(c_ptr) :: backend = c_null_ptr
    real(c_double) :: watchdog_s = 0
  end type cvy_context_opts

  type, bind(c) :: cvy_program_opts
    integer(c_size_t) :: size = 0
    integer(c_int) :: dtype = 0
    integer(c_int64_t) :: seed = 0
    integer(c_int64_t) :: batch_norm_group = 0
    type(c_ptr) :: kernels = c_null_ptr
    type(c_ptr) :: passes_off = c_null_ptr
    integer(c_int64_t) :: bucket_bytes = 0
    type(c_ptr) :: reduce = c_null_ptr
    integer(c_int) :: reduce_wire = 0
    type(c_ptr) :: reduce_progress = c_null_ptr
    integer(c_int) :: reduce_no_node = 0
    integer(c_int) :: overlap_forward = 0
    integer(c_int) :: share_weights = 0
    type(c_ptr) :: plan_file = c_null_ptr
    type(c_ptr) :: planning = c_null_ptr
    integer(c_int) :: precise = 0
    type(c_ptr) :: wisdom = c_null_ptr
    integer(c_int64_t) :: memory_limit = 0
    integer(c_int) :: update_mode = 0
    integer(c_int64_t) :: update_servers = 0
    integer(c_int64_t) :: update_staleness = 0
    real(c_double) :: clock_scale = 0
    real(c_double) :: clock_noise = 0
    integer(c_int) :: reduce_blocking = 0
    integer(c_int64_t) :: shards = 0
    integer(c_int) :: gradients_only = 0
    integer(c_int64_t) :: pipeline = 0
    type(c_ptr) :: pipeline_order = c_null_ptr
    integer(c_int64_t) :: tensor = 0
    type(c_ptr) :: tensor_layers = c_null_ptr
    integer(c_int64_t) :: spatial(3) = 0
    type(c_ptr) :: first_layers = c_null_ptr
    integer(c_int64_t) :: interleave = 0
    type(c_ptr) :: batch_norm_frozen = c_null_ptr
    integer(c_int) :: outputs_in_parts = 0
  end type cvy_program_opts

  type, bind(c) :: cvy_training_group
    integer(c_size_t) :: size = 0
    type(c_ptr) :: match = c_null_ptr
    real(c_double) :: lr_mult = 0
    real(c_double) :: decay_mult = 0
    integer(c_int) :: no_decay = 0
    integer(c_int) :: frozen = 0
  end type cvy_training_group

  type, bind(c) :: cvy_training_opts
    integer(c_size_t) :: size = 0
    type(c_ptr) :: losses = c_null_ptr
    type(c_ptr) :: trains = c_null_ptr
    type(c_ptr) :: optimizer = c_null_ptr
    type(c_ptr) :: optimizer_options = c_null_ptr
    real(c_double) :: weight_decay = 0
    real(c_double) :: clip_norm = 0
    real(c_double) :: clip_value = 0
    integer(c_int64_t) :: accumulate = 0
    type(c_ptr) :: outputs = c_null_ptr
    type(c_ptr) :: groups = c_null_ptr
    integer(c_int) :: ngroups = 0
    real(c_double) :: l1 = 0
    real(c_double) :: clip_weights = 0
    type(c_ptr) :: label = c_null_ptr
  end type cvy_training_opts

  type, bind(c) :: cvy_checkpoint_opts
    integer(c_size_t) :: size = 0
    type(c_ptr) :: folder = c_null_ptr
    integer(c_int64_t) :: step = 0
    type(c_ptr) :: state = c_null_ptr
    integer(c_int) :: keep = 0
    integer(c_int) :: is_best = 0
  end type cvy_checkpoint_opts

  type, bind(c) :: cvy_checkpoint_about
    integer(c_size_t) :: size = 0
    integer(c_int64_t) :: step = 0
    type(c_ptr) :: state = c_null_ptr
    type(c_ptr) :: notes = c_null_ptr
  end type cvy_checkpoint_about

  type, bind(c) :: cvy_checkpoint_entry
    type(c_ptr) :: name = c_null_ptr
    integer(c_int64_t) :: step = 0
    integer(c_int) :: is_best = 0
    integer(c_int) :: is_valid = 0
  end type cvy_checkpoint_entry

  type, bind(c) :: cvy_checkpoint_entries
    integer(c_size_t) :: size = 0
    type(c_ptr) :: at = c_null_ptr
    integer(c_int64_t) :: count = 0
    type(c_ptr) :: owned = c_null_ptr
  end type cvy_checkpoint_entries

  type, bind(c) :: cvy_convert_request
    integer(c_size_t) :: size = 0
    type(c_ptr) :: source = c_null_ptr
    type(c_ptr) :: destination = c_null_ptr
    type(c_ptr) :: format = c_null_ptr
    type(c_ptr) :: options = c_null_ptr
    integer(c_int64_t) :: parts = 0
    integer(c_int64_t) :: height = 0
    integer(c_int64_t) :: width = 0
    integer(c_int) :: unchecked = 0
    integer(c_int) :: skip_bad = 0
    type(c_funptr) :: progress = c_null_funptr
    type(c_ptr) :: user = c_null_ptr
  end type cvy_convert_request

  type, bind(c) :: cvy_data_opts
    integer(c_size_t) :: size = 0
    type(c_ptr) :: augment = c_null_ptr
    integer(c_int) :: random = 0
    integer(c_int64_t) :: seed = 0
  end type cvy_data_opts

  type, bind(c) :: cvy_data_about
    integer(c_size_t) :: size = 0
    integer(c_int64_t) :: samples = 0
    integer(c_int64_t) :: classes = 0
    integer(c_int64_t) :: fields = 0
    type(c_ptr) :: format = c_null_ptr
  end type cvy_data_about

  type, bind(c) :: cvy_data_loader_opts
    integer(c_size_t) :: size = 0
    integer(c_int64_t) :: batch = 0
    integer(c_int64_t) :: accumulate = 0
    integer(c_int64_t) :: epochs = 0
    integer(c_int64_t) :: first_step = 0
    type(c_ptr) :: shuffle = c_null_ptr
    integer(c_int64_t) :: seed = 0
    integer(c_int) :: keep_tail = 0
    integer(c_int) :: skip_bad = 0
    integer(c_int) :: threads = 0
    integer(c_int) :: prefetch = 0
  end type cvy_data_loader_opts

  type, bind(c) :: cvy_data_batch
    integer(c_size_t) :: size = 0
    integer(c_int64_t) :: step = 0
    integer(c_int64_t) :: epoch = 0
    integer(c_int64_t) :: batch = 0
    integer(c_int64_t) :: rows = 0
    type(c_ptr) :: field = c_null_ptr
    type(c_ptr) :: sample = c_null_ptr
    type(c_ptr) :: weight = c_null_ptr
    type(c_ptr) :: data = c_null_ptr
  end type cvy_data_batch

  type, bind(c) :: cvy_job_source
    integer(c_size_t) :: size = 0
    type(c_ptr) :: path = c_null_ptr
    type(c_ptr) :: text = c_null_ptr
    type(c_ptr) :: sets = c_null_ptr
    integer(c_int) :: nsets = 0
    type(c_ptr) :: caffe = c_null_ptr
    type(c_ptr) :: caffe_weights = c_null_ptr
    type(c_ptr) :: caffe_state = c_null_ptr
    type(cvy_shape) :: caffe_input
  end type cvy_job_source

  type, bind(c) :: cvy_job_about
    integer(c_size_t) :: size = 0
    character(kind=c_char) :: name(256) = c_null_char
    integer(c_int64_t) :: batch = 0
    integer(c_int64_t) :: workers = 0
  end type cvy_job_about

  type, bind(c) :: cvy_import_opts
    integer(c_size_t) :: size = 0
    type(c_ptr) :: weights = c_null_ptr
    type(c_ptr) :: out = c_null_ptr
    integer(c_int) :: replace = 0
    type(cvy_shape) :: input
  end type cvy_import_opts

  type, bind(c) :: cvy_progress
    integer(c_size_t) :: size = 0
    integer(c_int64_t) :: step = 0
    integer(c_int64_t) :: steps = 0
    real(c_double) :: epoch = 0
    real(c_double) :: epochs = 0
    real(c_double) :: loss = 0
    real(c_double) :: images_per_s = 0
    real(c_double) :: elapsed_s = 0
    real(c_double) :: left_s = 0
    type(c_ptr) :: event = c_null_ptr
  end type cvy_progress

  type, bind(c) :: cvy_train_opts
    integer(c_size_t) :: size = 0
    type(c_ptr) :: out = c_null_ptr
    integer(c_int) :: resume = 0
    type(c_ptr) :: plan_file = c_null_ptr
    type(c_ptr) :: control = c_null_ptr
    real(c_double) :: end_time = 0
    type(c_funptr) :: progress = c_null_funptr
    type(c_ptr) :: user = c_null_ptr
    type(c_ptr) :: end_source = c_null_ptr
  end type cvy_train_opts

  type, bind(c) :: cvy_train_result
    integer(c_size_t) :: size = 0
    character(kind=c_char) :: out(512) = c_null_char
    integer(c_int64_t) :: steps = 0
    real(c_double) :: seconds = 0
    real(c_double) :: train_loss = 0
    real(c_double) :: val_loss = 0
    integer(c_int) :: has_test = 0
    integer(c_int64_t) :: new_steps = 0
  end type cvy_train_result

  type, bind(c) :: cvy_doctor_opts
    integer(c_size_t) :: size = 0
    type(c_ptr) :: max = c_null_ptr
    real(c_double) :: seconds = 0
    type(c_ptr) :: out = c_null_ptr
    integer(c_int) :: platform = 0
  end type cvy_doctor_opts

  type, bind(c) :: cvy_doctor_result_node
    character(kind=c_char) :: host(64) = c_null_char
    character(kind=c_char) :: cpu(64) = c_null_char
    integer(c_int64_t) :: first_rank = 0
    integer(c_int64_t) :: ranks = 0
    integer(c_int64_t) :: threads = 0
    character(kind=c_char) :: bound_to(96) = c_null_char
    integer(c_int) :: cores_used = 0
    integer(c_int) :: cores_permitted = 0
    real(c_double) :: gb_per_s_from_the_node_before = 0
  end type cvy_doctor_result_node

  type, bind(c) :: cvy_doctor_result_rank
    integer(c_int64_t) :: node = 0
    integer(c_int64_t) :: threads = 0
    character(kind=c_char) :: bound_to(96) = c_null_char
  end type cvy_doctor_result_rank

  type, bind(c) :: cvy_doctor_result_clock
    real(c_double) :: apart_s = 0
    integer(c_int64_t) :: went_back = 0
    real(c_double) :: set_s = 0
    real(c_double) :: read_s = 0
  end type cvy_doctor_result_clock

  type, bind(c) :: cvy_doctor_result_files
    type(c_ptr) :: folder = c_null_ptr
    integer(c_int) :: ranks_that_do_not_see_them = 0
    integer(c_int) :: is_known = 0
    integer(c_int64_t) :: bytes = 0
    integer(c_int64_t) :: free_bytes = 0
    real(c_double) :: write_mb_per_s = 0
    real(c_double) :: read_mb_per_s = 0
    real(c_double) :: small_ms = 0
  end type cvy_doctor_result_files

  type, bind(c) :: cvy_doctor_result_link
    integer(c_int) :: from = 0
    integer(c_int) :: to = 0
    real(c_double) :: alpha_us = 0
    real(c_double) :: gb_per_s = 0
    integer(c_int) :: npoints = 0
    type(c_ptr) :: bytes = c_null_ptr
    type(c_ptr) :: us = c_null_ptr
  end type cvy_doctor_result_link

  type, bind(c) :: cvy_doctor_result_method
    character(kind=c_char) :: name(32) = c_null_char
    real(c_double) :: ms_best = 0
    real(c_double) :: ms_median = 0
    real(c_double) :: gb_per_s = 0
    integer(c_int64_t) :: wrong = 0
  end type cvy_doctor_result_method

  type, bind(c) :: cvy_doctor_result_sum
    integer(c_int64_t) :: bytes = 0
    integer(c_int) :: trials = 0
    integer(c_int) :: nmethods = 0
    type(c_ptr) :: method = c_null_ptr
    integer(c_int) :: chosen = 0
    integer(c_int) :: fastest = 0
  end type cvy_doctor_result_sum

  type, bind(c) :: cvy_doctor_result
    integer(c_size_t) :: size = 0
    integer(c_int) :: nnodes = 0
    integer(c_int) :: nranks = 0
    type(c_ptr) :: node = c_null_ptr
    type(c_ptr) :: rank = c_null_ptr
    integer(c_int64_t) :: leaders = 0
    character(kind=c_char) :: node_memory(24) = c_null_char
    character(kind=c_char) :: mpi_library(192) = c_null_char
    character(kind=c_char) :: mpi_threads(24) = c_null_char
    type(c_ptr) :: clock = c_null_ptr
    type(c_ptr) :: files = c_null_ptr
    type(c_ptr) :: inside_a_node = c_null_ptr
    type(c_ptr) :: between_nodes = c_null_ptr
    integer(c_int) :: nsums = 0
    type(c_ptr) :: sum = c_null_ptr
    integer(c_int64_t) :: left_out_from_bytes = 0
    integer(c_int) :: nfindings = 0
    type(c_ptr) :: finding = c_null_ptr
    type(c_ptr) :: owned = c_null_ptr
    type(c_ptr) :: platform = c_null_ptr
  end type cvy_doctor_result

  type, bind(c) :: cvy_selftest_opts
    integer(c_size_t) :: size = 0
    type(c_ptr) :: out = c_null_ptr
    integer(c_int64_t) :: ranks = 0
    type(c_ptr) :: only = c_null_ptr
    real(c_double) :: kernel_s = 0
    real(c_double) :: limit_s = 0
    type(c_ptr) :: control = c_null_ptr
    type(c_funptr) :: line = c_null_funptr
    type(c_ptr) :: user = c_null_ptr
  end type cvy_selftest_opts

  type, bind(c) :: cvy_selftest_result_check
    type(c_ptr) :: name = c_null_ptr
    integer(c_int) :: verdict = 0
    type(c_ptr) :: text = c_null_ptr
    type(c_ptr) :: note = c_null_ptr
    real(c_double) :: seconds = 0
  end type cvy_selftest_result_check

  type, bind(c) :: cvy_selftest_result
    integer(c_size_t) :: size = 0
    integer(c_int) :: passed = 0
    integer(c_int) :: failed = 0
    integer(c_int) :: skipped = 0
    integer(c_int) :: ranks = 0
    real(c_double) :: seconds = 0
    integer(c_int) :: nchecks = 0
    type(c_ptr) :: check = c_null_ptr
    type(c_ptr) :: owned = c_null_ptr
  end type cvy_selftest_result

  type, bind(c) :: cvy_study_opts
    integer(c_size_t) :: size = 0
    type(c_ptr) :: name = c_null_ptr
    type(c_ptr) :: text = c_null_ptr
    type(c_ptr) :: out = c_null_ptr
    type(c_ptr) :: frameworks = c_null_ptr
    type(c_ptr) :: program = c_null_ptr
    type(c_ptr) :: only = c_null_ptr
    type(c_ptr) :: published = c_null_ptr
    integer(c_int) :: quick = 0
    integer(c_int) :: retry = 0
    type(c_ptr) :: stop = c_null_ptr
    type(c_funptr) :: show = c_null_funptr
    type(c_ptr) :: user = c_null_ptr
    type(c_ptr) :: data = c_null_ptr
    integer(c_int) :: ndata = 0
    type(c_ptr) :: only_cases = c_null_ptr
    integer(c_int) :: nonly = 0
    integer(c_int64_t) :: nodes = 0
    integer(c_int64_t) :: ranks_per_node = 0
  end type cvy_study_opts

  type, bind(c) :: cvy_study_result
    integer(c_size_t) :: size = 0
    integer(c_int64_t) :: total = 0
    integer(c_int64_t) :: measured = 0
    integer(c_int64_t) :: earlier = 0
    integer(c_int64_t) :: failed = 0
    integer(c_int64_t) :: skipped = 0
  end type cvy_study_result

  type, bind(c) :: cvy_tune_opts
    integer(c_size_t) :: size = 0
    type(c_ptr) :: network = c_null_ptr
    integer(c_int) :: is_job = 0
    type(c_ptr) :: batches = c_null_ptr
    integer(c_int) :: first_batch = 0
    type(c_ptr) :: sets = c_null_ptr
    integer(c_int) :: nsets = 0
    integer(c_int64_t) :: seconds = 0
    type(c_ptr) :: out = c_null_ptr
    type(c_ptr) :: frameworks = c_null_ptr
    type(c_ptr) :: program = c_null_ptr
    type(c_ptr) :: stop = c_null_ptr
    type(c_funptr) :: show = c_null_funptr
    type(c_ptr) :: user = c_null_ptr
  end type cvy_tune_opts

  type, bind(c) :: cvy_tune_result
    integer(c_size_t) :: size = 0
    integer(c_int) :: ranks = 0
    integer(c_int) :: threads = 0
    integer(c_int64_t) :: batch = 0
    character(kind=c_char) :: progress(16) = c_null_char
    character(kind=c_char) :: overlap(16) = c_null_char
    character(kind=c_char) :: bucket(16) = c_null_char
    integer(c_int64_t) :: settings = 0
    integer(c_int64_t) :: measurements = 0
    real(c_double) :: images_per_s = 0
    real(c_double) :: images_per_s_default = 0
  end type cvy_tune_result

  type, bind(c) :: cvy_profile
    integer(c_size_t) :: size = 0
    integer(c_int) :: ranks = 0
    integer(c_int) :: threads = 0
    character(kind=c_char) :: key(128, 32) = c_null_char
    integer(c_int) :: nkeys = 0
  end type cvy_profile

  type, bind(c) :: cvy_run_summary
    integer(c_size_t) :: size = 0
    character(kind=c_char) :: folder(512) = c_null_char
    integer(c_int) :: state = 0
    character(kind=c_char) :: why(1280) = c_null_char
    integer(c_int64_t) :: step = 0
    integer(c_int64_t) :: steps = 0
    real(c_double) :: epoch = 0
    real(c_double) :: epochs = 0
    character(kind=c_char) :: metric(80) = c_null_char
    real(c_double) :: best = 0
    real(c_double) :: best_epoch = 0
    integer(c_int) :: best_higher = 0
    real(c_double) :: last_loss = 0
    real(c_double) :: images_per_s = 0
    real(c_double) :: seconds = 0
    real(c_double) :: left_s = 0
    integer(c_int) :: nodes = 0
    integer(c_int) :: ranks = 0
    real(c_double) :: changed = 0
  end type cvy_run_summary

  type, bind(c) :: cvy_run_list_result
    integer(c_size_t) :: size = 0
    integer(c_int) :: nruns = 0
    type(c_ptr) :: run = c_null_ptr
    integer(c_int) :: nunreadable = 0
    type(c_ptr) :: unreadable = c_null_ptr
    type(c_ptr) :: owned = c_null_ptr
  end type cvy_run_list_result

  type, bind(c) :: cvy_metric_batch
    integer(c_size_t) :: size = 0
    integer(c_int64_t) :: rows = 0
    type(c_ptr) :: output = c_null_ptr
    integer(c_int) :: output_dtype = 0
    type(c_ptr) :: target = c_null_ptr
    integer(c_int) :: target_dtype = 0
    type(c_ptr) :: weight = c_null_ptr
  end type cvy_metric_batch

  type, bind(c) :: cvy_network_opts
    integer(c_size_t) :: size = 0
    type(c_ptr) :: job = c_null_ptr
    type(c_ptr) :: checkpoint = c_null_ptr
    type(c_ptr) :: outputs = c_null_ptr
    integer(c_int64_t) :: batch = 0
    type(c_ptr) :: weights = c_null_ptr
  end type cvy_network_opts

  type, bind(c) :: cvy_network_about
    integer(c_size_t) :: size = 0
    type(c_ptr) :: name = c_null_ptr
    integer(c_int64_t) :: step = 0
    integer(c_int64_t) :: parameters = 0
    integer(c_int64_t) :: classes = 0
    integer(c_int64_t) :: inputs = 0
    integer(c_int64_t) :: outputs = 0
    real(c_double) :: temperature = 0
  end type cvy_network_about

  type, bind(c) :: cvy_network_in
    type(c_ptr) :: name = c_null_ptr
    integer(c_int) :: dtype = 0
    integer(c_int64_t) :: elems = 0
    type(c_ptr) :: data = c_null_ptr
    type(cvy_shape) :: shape
  end type cvy_network_in

  type, bind(c) :: cvy_network_out
    type(c_ptr) :: name = c_null_ptr
    integer(c_int) :: dtype = 0
    integer(c_int64_t) :: elems = 0
    type(c_ptr) :: data = c_null_ptr
  end type cvy_network_out

  type, bind(c) :: cvy_network_export_opts
    integer(c_size_t) :: size = 0
    integer(c_int64_t) :: opset = 0
    integer(c_int) :: float_input = 0
    integer(c_int) :: replace = 0
    type(c_ptr) :: net = c_null_ptr
  end type cvy_network_export_opts

  type, bind(c) :: cvy_partition_layer
    type(c_ptr) :: name = c_null_ptr
    type(c_ptr) :: op = c_null_ptr
    integer(c_int) :: nsrc = 0
    type(c_ptr) :: src = c_null_ptr
    type(cvy_shape) :: result
    integer(c_int64_t) :: result_bytes = 0
    integer(c_int64_t) :: flop = 0
    integer(c_int64_t) :: weight_bytes = 0
    integer(c_int) :: can_split = 0
  end type cvy_partition_layer

  type, bind(c) :: cvy_partition_graph
    integer(c_size_t) :: size = 0
    integer(c_int) :: nstages = 0
    integer(c_int) :: nmicro = 0
    integer(c_int) :: nparts = 0
    integer(c_int) :: ndata = 0
    integer(c_int) :: nlayer = 0
    type(c_ptr) :: layer = c_null_ptr
    type(c_funptr) :: set_stage = c_null_funptr
    type(c_funptr) :: split_channels = c_null_funptr
    character(kind=c_char) :: message(256) = c_null_char
    type(c_ptr) :: owned = c_null_ptr
  end type cvy_partition_graph

  type, bind(c) :: cvy_partition
    integer(c_size_t) :: size = 0
    type(c_ptr) :: name = c_null_ptr
    type(c_ptr) :: summary = c_null_ptr
    type(c_funptr) :: run = c_null_funptr
    type(c_funptr) :: split = c_null_funptr
  end type cvy_partition

  type, bind(c) :: cvy_operator_tensor
    integer(c_int) :: dtype = 0
    integer(c_int) :: ndim = 0
    integer(c_int64_t) :: dim(6) = 0
    integer(c_int64_t) :: elems = 0
    type(c_ptr) :: data = c_null_ptr
  end type cvy_operator_tensor

  type, bind(c) :: cvy_operator_option
    type(c_ptr) :: name = c_null_ptr
    integer(c_int) :: type = 0
    integer(c_size_t) :: offset = 0
    type(c_ptr) :: fallback = c_null_ptr
    type(c_ptr) :: valid = c_null_ptr
    type(c_ptr) :: help = c_null_ptr
  end type cvy_operator_option

  type, bind(c) :: cvy_operator_param
    type(c_ptr) :: name = c_null_ptr
    type(c_ptr) :: init = c_null_ptr
    type(c_ptr) :: init_options = c_null_ptr
    integer(c_int) :: decay = 0
  end type cvy_operator_param

  type, bind(c) :: cvy_operator_shapes
    integer(c_size_t) :: size = 0
    type(c_ptr) :: options = c_null_ptr
    integer(c_int) :: nsrc = 0
    type(c_ptr) :: src = c_null_ptr
    type(cvy_shape) :: dst(3)
    type(cvy_shape) :: param(4)
    integer(c_int64_t) :: fan_in(4) = 0
    integer(c_int64_t) :: fan_out(4) = 0
    character(kind=c_char) :: message(256) = c_null_char
    type(c_ptr) :: user = c_null_ptr
  end type cvy_operator_shapes

  type, bind(c) :: cvy_operator_call
    integer(c_size_t) :: size = 0
    type(c_ptr) :: options = c_null_ptr
    integer(c_int) :: threads = 0
    integer(c_int) :: training = 0
    integer(c_int) :: nsrc = 0
    type(c_ptr) :: src = c_null_ptr
    type(c_ptr) :: param = c_null_ptr
    type(c_ptr) :: dst = c_null_ptr
    type(c_ptr) :: ddst = c_null_ptr
    type(c_ptr) :: dsrc = c_null_ptr
    type(c_ptr) :: dparam = c_null_ptr
    type(c_ptr) :: message = c_null_ptr
    integer(c_size_t) :: message_bytes = 0
    type(c_ptr) :: user = c_null_ptr
  end type cvy_operator_call

  type, bind(c) :: cvy_operator_cost
    integer(c_int64_t) :: forward_flop = 0
    integer(c_int64_t) :: backward_flop = 0
  end type cvy_operator_cost

  type, bind(c) :: cvy_operator_sample
    type(c_ptr) :: src = c_null_ptr
    type(c_ptr) :: options = c_null_ptr
    integer(c_int) :: flags = 0
    integer(c_int64_t) :: int_bound = 0
  end type cvy_operator_sample

  type, bind(c) :: cvy_operator
    integer(c_size_t) :: size = 0
    type(c_ptr) :: name = c_null_ptr
    type(c_ptr) :: summary = c_null_ptr
    integer(c_size_t) :: options_size = 0
    type(c_ptr) :: options = c_null_ptr
    integer(c_int) :: nsrc_min = 0
    integer(c_int) :: nsrc_max = 0
    integer(c_int) :: integer_src = 0
    integer(c_int) :: nsaved = 0
    type(c_ptr) :: params = c_null_ptr
    integer(c_int) :: splits = 0
    integer(c_int) :: reads = 0
    type(c_funptr) :: shape = c_null_funptr
    type(c_funptr) :: forward = c_null_funptr
    type(c_funptr) :: backward = c_null_funptr
    type(c_funptr) :: cost = c_null_funptr
    type(c_ptr) :: samples = c_null_ptr
    type(c_ptr) :: user = c_null_ptr
    type(cvy_shape) :: result
  end type cvy_operator

  type, bind(c) :: cvy_extension
    integer(c_int) :: abi = 0
    integer(c_int) :: version = 0
    integer(c_size_t) :: size = 0
    type(c_ptr) :: name = c_null_ptr
    type(c_ptr) :: operators = c_null_ptr
    type(c_ptr) :: partitions = c_null_ptr
  end type cvy_extension

  type, bind(c) :: cvy_reducer_opts
    integer(c_size_t) :: size = 0
    integer(c_int64_t) :: bucket_bytes = 0
    type(c_ptr) :: algorithm = c_null_ptr
    integer(c_int) :: wire = 0
    type(c_ptr) :: progress = c_null_ptr
    integer(c_int) :: no_node = 0
    integer(c_int) :: average = 0
    real(c_double) :: factor = 0
    integer(c_int) :: depth = 0
  end type cvy_reducer_opts

  type, bind(c) :: cvy_schedule_opts
    integer(c_size_t) :: size = 0
    real(c_double) :: lr = 0
    integer(c_int64_t) :: batch = 0
    integer(c_int64_t) :: epoch_samples = 0
    real(c_double) :: epochs = 0
    real(c_double) :: batch_factor = 0
  end type cvy_schedule_opts

  type, bind(c) :: cvy_test_metric
    character(kind=c_char) :: name(48) = c_null_char
    real(c_double) :: value = 0
  end type cvy_test_metric

  type, bind(c) :: cvy_test_output
    real(c_double) :: rmse = 0
    real(c_double) :: mae = 0
    real(c_double) :: r2 = 0
  end type cvy_test_output

  type, bind(c) :: cvy_test_result
    integer(c_size_t) :: size = 0
    character(kind=c_char) :: checkpoint(64) = c_null_char
    character(kind=c_char) :: data(512) = c_null_char
    integer(c_int64_t) :: samples = 0
    real(c_double) :: loss = 0
    real(c_double) :: seconds = 0
    integer(c_int) :: nmetric = 0
    type(c_ptr) :: metric = c_null_ptr
    integer(c_int) :: nclass = 0
    type(c_ptr) :: class_name = c_null_ptr
    integer(c_int) :: nconfusion = 0
    type(c_ptr) :: confusion = c_null_ptr
    type(c_ptr) :: json = c_null_ptr
    type(c_ptr) :: owned = c_null_ptr
    integer(c_int) :: noutput = 0
    type(c_ptr) :: output = c_null_ptr
    type(c_ptr) :: note = c_null_ptr
  end type cvy_test_result

  type, bind(c) :: cvy_calibration_result
    integer(c_size_t) :: size = 0
    real(c_double) :: temperature = 0
    integer(c_int64_t) :: samples = 0
    real(c_double) :: nll_before = 0
    real(c_double) :: nll_after = 0
    real(c_double) :: ece_before = 0
    real(c_double) :: ece_after = 0
  end type cvy_calibration_result

  type, bind(c) :: cvy_ensemble_scores
    integer(c_size_t) :: size = 0
    integer(c_int64_t) :: samples = 0
    integer(c_int) :: nmember = 0
    integer(c_int) :: nmetric = 0
    type(c_ptr) :: member = c_null_ptr
    type(c_ptr) :: metric = c_null_ptr
    type(c_ptr) :: value = c_null_ptr
    type(c_ptr) :: owned = c_null_ptr
    type(c_ptr) :: mean = c_null_ptr
    type(c_ptr) :: spread = c_null_ptr
    type(c_ptr) :: json = c_null_ptr
  end type cvy_ensemble_scores

  type, bind(c) :: cvy_predict_request
    integer(c_size_t) :: size = 0
    type(c_ptr) :: target = c_null_ptr
    type(c_ptr) :: job = c_null_ptr
    type(c_ptr) :: data = c_null_ptr
    type(c_ptr) :: out = c_null_ptr
    integer(c_int) :: what = 0
    integer(c_int64_t) :: top = 0
    integer(c_int) :: header = 0
    integer(c_int) :: names = 0
    type(c_ptr) :: outputs = c_null_ptr
    type(c_ptr) :: weights = c_null_ptr
    type(c_ptr) :: member = c_null_ptr
    integer(c_int) :: nmember = 0
    integer(c_int64_t) :: passes = 0
    integer(c_int) :: no_calibration = 0
    integer(c_int64_t) :: samples = 0
  end type cvy_predict_request

  type, bind(c) :: cvy_site_about
    integer(c_size_t) :: size = 0
    type(c_ptr) :: path = c_null_ptr
    type(c_ptr) :: user_path = c_null_ptr
    type(c_ptr) :: scheduler = c_null_ptr
    type(c_ptr) :: account = c_null_ptr
    type(c_ptr) :: queue = c_null_ptr
    type(c_ptr) :: parallel_environment = c_null_ptr
    type(c_ptr) :: launcher = c_null_ptr
    type(c_ptr) :: mpi = c_null_ptr
    type(c_ptr) :: launcher_option = c_null_ptr
    integer(c_int) :: launcher_options = 0
    type(c_ptr) :: module = c_null_ptr
    integer(c_int) :: modules = 0
    type(c_ptr) :: header = c_null_ptr
    integer(c_int) :: headers = 0
    type(c_ptr) :: environment = c_null_ptr
    integer(c_int) :: variables = 0
    integer(c_int64_t) :: nodes = 0
    integer(c_int64_t) :: ppn = 0
    integer(c_int64_t) :: threads = 0
    integer(c_int64_t) :: signal_s = 0
    type(c_ptr) :: time = c_null_ptr
  end type cvy_site_about

  type, bind(c) :: cvy_reservoir_opts
    integer(c_size_t) :: size = 0
    integer(c_int64_t) :: capacity = 0
    type(c_ptr) :: keep = c_null_ptr
    integer(c_int64_t) :: seed = 0
  end type cvy_reservoir_opts

  type, bind(c) :: cvy_stream_opts
    integer(c_size_t) :: size = 0
    type(c_ptr) :: role = c_null_ptr
    type(c_ptr) :: reservoir = c_null_ptr
    type(c_ptr) :: program = c_null_ptr
    integer(c_int64_t) :: queue = 0
    type(c_ptr) :: when_full = c_null_ptr
    real(c_double) :: wait_s = 0
    real(c_double) :: lost_s = 0
    integer(c_int) :: independent = 0
  end type cvy_stream_opts

  type, bind(c) :: cvy_stream_counts
    integer(c_size_t) :: size = 0
    integer(c_int64_t) :: pushed = 0
    integer(c_int64_t) :: delivered = 0
    integer(c_int64_t) :: dropped = 0
    integer(c_int64_t) :: waiting = 0
    integer(c_int64_t) :: received = 0
    integer(c_int64_t) :: version = 0
    real(c_double) :: longest_push_s = 0
    real(c_double) :: longest_take_s = 0
  end type cvy_stream_counts

  type, bind(c) :: cvy_bench_opts
    integer(c_size_t) :: size = 0
    type(c_ptr) :: job = c_null_ptr
    type(c_ptr) :: model = c_null_ptr
    type(c_ptr) :: model_options = c_null_ptr
    type(cvy_shape) :: input
    integer(c_int64_t) :: classes = 0
    integer(c_int64_t) :: batch = 0
    integer(c_int) :: mode = 0
    integer(c_int) :: dtype = 0
    integer(c_int64_t) :: steps = 0
    integer(c_int64_t) :: warmup = 0
    type(c_ptr) :: kernels = c_null_ptr
    type(c_ptr) :: passes_off = c_null_ptr
    type(c_ptr) :: trace = c_null_ptr
    type(c_ptr) :: planning = c_null_ptr
    type(c_ptr) :: sets = c_null_ptr
    integer(c_int) :: nsets = 0
    real(c_double) :: seconds = 0
    integer(c_int) :: foresee = 0
  end type cvy_bench_opts

  type, bind(c) :: cvy_bench_result
    integer(c_size_t) :: size = 0
    character(kind=c_char) :: model(128) = c_null_char
    integer(c_int64_t) :: batch = 0
    integer(c_int) :: mode = 0
    integer(c_int) :: dtype = 0
    type(cvy_shape) :: input
    integer(c_int) :: threads = 0
    integer(c_int) :: ranks = 0
    integer(c_int) :: deterministic_shards = 0
    integer(c_int) :: by_clock = 0
    real(c_double) :: images_per_s = 0
    real(c_double) :: images_per_s_best = 0
    real(c_double) :: ms_median = 0
    real(c_double) :: ms_mean = 0
    real(c_double) :: ms_sd = 0
    real(c_double) :: ms_best = 0
    integer(c_int64_t) :: steps = 0
    real(c_double) :: gflop = 0
    real(c_double) :: gflop_per_s = 0
    real(c_double) :: peak_gflop_per_s = 0
    real(c_double) :: peak_share = 0
    character(kind=c_char) :: update(32) = c_null_char
    character(kind=c_char) :: progress(16) = c_null_char
    real(c_double) :: bytes_wire = 0
    real(c_double) :: exposed_comm_ms = 0
    real(c_double) :: hidden_comm_ms = 0
    real(c_double) :: wait_slowest_ms = 0
    real(c_double) :: spread_ms = 0
    integer(c_int64_t) :: parameters = 0
    integer(c_int64_t) :: macs = 0
    real(c_double) :: loss_first = 0
    real(c_double) :: loss_last = 0
    real(c_double) :: peak_rss_bytes = 0
    real(c_double) :: peak_rss_bytes_largest_rank = 0
    integer(c_int64_t) :: arena_bytes = 0
    real(c_double) :: plan_s = 0
    real(c_double) :: predicted_ms = 0
    integer(c_int) :: nodes = 0
    real(c_double) :: images_per_s_node = 0
    real(c_double) :: images_per_s_rank = 0
    integer(c_int) :: pipeline = 0
    integer(c_int) :: micro_batches = 0
    real(c_double) :: exposed_data_ms = 0
    real(c_double) :: exposed_pipeline_ms = 0
    real(c_double) :: exposed_tensor_ms = 0
    real(c_double) :: exposed_spatial_ms = 0
    real(c_double) :: bubble = 0
    real(c_double) :: bubble_predicted = 0
    real(c_double) :: forward_ms = 0
    real(c_double) :: backward_ms = 0
    real(c_double) :: update_ms = 0
    real(c_double) :: communication_ms = 0
    real(c_double) :: imbalance_ms = 0
    real(c_double) :: other_ms = 0
    real(c_double) :: joules_per_image = 0
  end type cvy_bench_result

  type, bind(c) :: cvy_check_result
    integer(c_size_t) :: size = 0
    character(kind=c_char) :: model(128) = c_null_char
    integer(c_int64_t) :: batch = 0
    integer(c_int) :: mode = 0
    integer(c_int) :: dtype = 0
    type(cvy_shape) :: input
    integer(c_int) :: threads = 0
    integer(c_int) :: ranks = 0
    integer(c_int) :: deterministic_shards = 0
    integer(c_int) :: by_clock = 0
    character(kind=c_char) :: against(32) = c_null_char
    character(kind=c_char) :: kernels(160) = c_null_char
    character(kind=c_char) :: kernels_plain(160) = c_null_char
    integer(c_int) :: steps = 0
    real(c_double) :: loss = 0
    real(c_double) :: loss_plain = 0
    real(c_double) :: difference_loss = 0
    real(c_double) :: bound_loss = 0
    real(c_double) :: difference_later_losses = 0
    real(c_double) :: difference_weights = 0
    real(c_double) :: bound_weights = 0
    real(c_double) :: difference_change = 0
    real(c_double) :: bound_change = 0
    real(c_double) :: difference_change_worst = 0
    character(kind=c_char) :: worst_weight(128) = c_null_char
    integer(c_int) :: agrees = 0
  end type cvy_check_result

  type, bind(c) :: cvy_grids_opts
    integer(c_size_t) :: size = 0
    integer(c_int64_t) :: ranks = 0
    integer(c_int64_t) :: node_ranks = 0
    integer(c_int64_t) :: threads = 0
    integer(c_int64_t) :: memory_bytes = 0
    real(c_double) :: latency_s = 0
    real(c_double) :: bytes_per_s = 0
    integer(c_int64_t) :: shown = 0
    integer(c_int) :: json = 0
  end type cvy_grids_opts

  type, bind(c) :: cvy_bench_data_opts
    integer(c_size_t) :: size = 0
    type(c_ptr) :: source = c_null_ptr
    type(c_ptr) :: augment = c_null_ptr
    integer(c_int) :: threads = 0
    integer(c_int64_t) :: batch = 0
    real(c_double) :: seconds = 0
    type(c_ptr) :: shuffle = c_null_ptr
  end type cvy_bench_data_opts

  type, bind(c) :: cvy_bench_data_result
    integer(c_size_t) :: size = 0
    character(kind=c_char) :: data(512) = c_null_char
    character(kind=c_char) :: format(32) = c_null_char
    integer(c_int64_t) :: samples = 0
    type(cvy_shape) :: shape
    character(kind=c_char) :: shuffle(16) = c_null_char
    integer(c_int) :: threads = 0
    integer(c_int64_t) :: batch = 0
    real(c_double) :: seconds = 0
    integer(c_int64_t) :: images = 0
    real(c_double) :: images_per_s = 0
    real(c_double) :: stored_mb_per_s = 0
    real(c_double) :: output_mb_per_s = 0
  end type cvy_bench_data_result

  type, bind(c) :: cvy_platform_opts
    integer(c_size_t) :: size = 0
    type(c_ptr) :: file = c_null_ptr
    type(c_ptr) :: name = c_null_ptr
    type(c_ptr) :: text = c_null_ptr
    type(c_ptr) :: model = c_null_ptr
    real(c_double) :: latency_factor = 0
    real(c_double) :: bandwidth_factor = 0
  end type cvy_platform_opts

  type, bind(c) :: cvy_platform
    integer(c_size_t) :: size = 0
    integer(c_int64_t) :: nodes = 0
    real(c_double) :: images_per_s = 0
    real(c_double) :: gflop_per_s = 0
    real(c_double) :: add_bytes_per_s = 0
    integer(c_int64_t) :: cores = 0
    real(c_double) :: message_s = 0
    character(kind=c_char) :: summary(160) = c_null_char
    type(c_ptr) :: xml = c_null_ptr
    real(c_double) :: memory_bytes_per_s = 0
    real(c_double) :: shared_bandwidth = 0
    integer(c_int64_t) :: switch_nodes = 0
  end type cvy_platform

  type, bind(c) :: cvy_operators_opts
    integer(c_size_t) :: size = 0
    type(c_ptr) :: only = c_null_ptr
    type(c_funptr) :: line = c_null_funptr
    type(c_ptr) :: user = c_null_ptr
    type(c_ptr) :: sources = c_null_ptr
    type(c_ptr) :: values = c_null_ptr
  end type cvy_operators_opts

  type, bind(c) :: cvy_operators_result
    integer(c_size_t) :: size = 0
    integer(c_int) :: operators = 0
    integer(c_int) :: checks = 0
    integer(c_int) :: failed = 0
  end type cvy_operators_result

  type, bind(c) :: cvy_sweep_opts
    integer(c_size_t) :: size = 0
    type(c_ptr) :: out = c_null_ptr
    integer(c_int) :: resume = 0
    type(c_ptr) :: sets = c_null_ptr
    integer(c_int) :: nsets = 0
    type(c_ptr) :: control = c_null_ptr
    real(c_double) :: end_time = 0
    type(c_funptr) :: line = c_null_funptr
    type(c_ptr) :: user = c_null_ptr
    integer(c_int) :: retry = 0
    type(c_ptr) :: end_source = c_null_ptr
  end type cvy_sweep_opts

  type, bind(c) :: cvy_sweep_result
    integer(c_size_t) :: size = 0
    integer(c_int64_t) :: trials = 0
    integer(c_int64_t) :: scored = 0
    integer(c_int64_t) :: failed = 0
    integer(c_int64_t) :: best = 0
    real(c_double) :: score = 0
    integer(c_int64_t) :: idle_ranks = 0
  end type cvy_sweep_result

  interface
    function cvy_error_text() bind(c)
      import
      type(c_ptr) :: cvy_error_text
    end function cvy_error_text
    function cvy_status_text(status) bind(c)
      import
      integer(c_int), value :: status
      type(c_ptr) :: cvy_status_text
    end function cvy_status_text
    function cvy_version() bind(c)
      import
      type(c_ptr) :: cvy_version
    end function cvy_version
    function cvy_version_number() bind(c)
      import
      integer(c_int) :: cvy_version_number
    end function cvy_version_number
    function cvy_memory_bytes() bind(c)
      import
      integer(c_int64_t) :: cvy_memory_bytes
    end function cvy_memory_bytes
    function cvy_dtype_bytes(dtype) bind(c)
      import
      integer(c_int), value :: dtype
      integer(c_size_t) :: cvy_dtype_bytes
    end function cvy_dtype_bytes
    function cvy_dtype_text(dtype) bind(c)
      import
      integer(c_int), value :: dtype
      type(c_ptr) :: cvy_dtype_text
    end function cvy_dtype_text
    function cvy_dtype_parse(text, dtype_out) bind(c)
      import
      type(c_ptr), value :: text
      integer(c_int), intent(inout), optional :: dtype_out
      integer(c_int) :: cvy_dtype_parse
    end function cvy_dtype_parse
    function cvy_context_create(opts, context_out) bind(c)
      import
      type(cvy_context_opts), intent(in), optional :: opts
      type(c_ptr), intent(inout) :: context_out
      integer(c_int) :: cvy_context_create
    end function cvy_context_create
    subroutine cvy_context_destroy(context) bind(c)
      import
      type(c_ptr), intent(inout) :: context
    end subroutine cvy_context_destroy
    function cvy_context_rank(context) bind(c)
      import
      type(c_ptr), value :: context
      integer(c_int) :: cvy_context_rank
    end function cvy_context_rank
    function cvy_context_nranks(context) bind(c)
      import
      type(c_ptr), value :: context
      integer(c_int) :: cvy_context_nranks
    end function cvy_context_nranks
    function cvy_context_threads(context) bind(c)
      import
      type(c_ptr), value :: context
      integer(c_int) :: cvy_context_threads
    end function cvy_context_threads
    function cvy_build_info() bind(c)
      import
      type(c_ptr) :: cvy_build_info
    end function cvy_build_info
    function cvy_output_kind_text(kind) bind(c)
      import
      integer(c_int), value :: kind
      type(c_ptr) :: cvy_output_kind_text
    end function cvy_output_kind_text
    function cvy_model_create(name, model_out) bind(c)
      import
      type(c_ptr), value :: name
      type(c_ptr), intent(inout) :: model_out
      integer(c_int) :: cvy_model_create
    end function cvy_model_create
    function cvy_model_zoo(name, options, input, classes, model_out) bind(c)
      import
      type(c_ptr), value :: name
      type(c_ptr), value :: options
      type(cvy_shape), intent(in), optional :: input
      integer(c_int64_t), value :: classes
      type(c_ptr), intent(inout) :: model_out
      integer(c_int) :: cvy_model_zoo
    end function cvy_model_zoo
    function cvy_model_from_file(path, options, model_out) bind(c)
      import
      type(c_ptr), value :: path
      type(c_ptr), value :: options
      type(c_ptr), intent(inout) :: model_out
      integer(c_int) :: cvy_model_from_file
    end function cvy_model_from_file
    subroutine cvy_model_destroy(model) bind(c)
      import
      type(c_ptr), intent(inout) :: model
    end subroutine cvy_model_destroy
    function cvy_model_use_context(model, context) bind(c)
      import
      type(c_ptr), value :: model
      type(c_ptr), value :: context
      integer(c_int) :: cvy_model_use_context
    end function cvy_model_use_context
    function cvy_model_add_input(model, name, dtype, sample_shape) bind(c)
      import
      type(c_ptr), value :: model
      type(c_ptr), value :: name
      integer(c_int), value :: dtype
      type(cvy_shape), intent(in), optional :: sample_shape
      integer(c_int) :: cvy_model_add_input
    end function cvy_model_add_input
    function cvy_model_add(model, op, name, options, from) bind(c)
      import
      type(c_ptr), value :: model
      type(c_ptr), value :: op
      type(c_ptr), value :: name
      type(c_ptr), value :: options
      type(c_ptr), value :: from
      integer(c_int) :: cvy_model_add
    end function cvy_model_add
    function cvy_model_set_stage(model, layer, stage) bind(c)
      import
      type(c_ptr), value :: model
      type(c_ptr), value :: layer
      integer(c_int64_t), value :: stage
      integer(c_int) :: cvy_model_set_stage
    end function cvy_model_set_stage
    function cvy_model_output(model) bind(c)
      import
      type(c_ptr), value :: model
      type(c_ptr) :: cvy_model_output
    end function cvy_model_output
    function cvy_models_list(text_out) bind(c)
      import
      type(c_ptr), intent(inout), optional :: text_out
      integer(c_int) :: cvy_models_list
    end function cvy_models_list
    function cvy_layers_list(text_out) bind(c)
      import
      type(c_ptr), intent(inout), optional :: text_out
      integer(c_int) :: cvy_layers_list
    end function cvy_layers_list
    subroutine cvy_text_release(text) bind(c)
      import
      type(c_ptr), intent(inout), optional :: text
    end subroutine cvy_text_release
    function cvy_program_opts_set(opts, name, value) bind(c)
      import
      type(cvy_program_opts), intent(inout), optional :: opts
      type(c_ptr), value :: name
      type(c_ptr), value :: value
      integer(c_int) :: cvy_program_opts_set
    end function cvy_program_opts_set
    function cvy_program_create(context, opts, program_out) bind(c)
      import
      type(c_ptr), value :: context
      type(cvy_program_opts), intent(in), optional :: opts
      type(c_ptr), intent(inout) :: program_out
      integer(c_int) :: cvy_program_create
    end function cvy_program_create
    subroutine cvy_program_destroy(program) bind(c)
      import
      type(c_ptr), intent(inout) :: program
    end subroutine cvy_program_destroy
    function cvy_program_add_training(program, model, batch, opts, task_out) bind(c)
      import
      type(c_ptr), value :: program
      type(c_ptr), value :: model
      integer(c_int64_t), value :: batch
      type(cvy_training_opts), intent(in), optional :: opts
      integer(c_int), intent(inout), optional :: task_out
      integer(c_int) :: cvy_program_add_training
    end function cvy_program_add_training
    function cvy_program_add_forward(program, model, batch, outputs, task_out) bind(c)
      import
      type(c_ptr), value :: program
      type(c_ptr), value :: model
      integer(c_int64_t), value :: batch
      type(c_ptr), value :: outputs
      integer(c_int), intent(inout), optional :: task_out
      integer(c_int) :: cvy_program_add_forward
    end function cvy_program_add_forward
    function cvy_program_plan(program) bind(c)
      import
      type(c_ptr), value :: program
      integer(c_int) :: cvy_program_plan
    end function cvy_program_plan
    function cvy_program_rows(program, task) bind(c)
      import
      type(c_ptr), value :: program
      integer(c_int), value :: task
      integer(c_int64_t) :: cvy_program_rows
    end function cvy_program_rows
    function cvy_program_first_row(program, task) bind(c)
      import
      type(c_ptr), value :: program
      integer(c_int), value :: task
      integer(c_int64_t) :: cvy_program_first_row
    end function cvy_program_first_row
    function cvy_program_feed(program, task, input) bind(c)
      import
      type(c_ptr), value :: program
      integer(c_int), value :: task
      type(c_ptr), value :: input
      type(c_ptr) :: cvy_program_feed
    end function cvy_program_feed
    function cvy_program_set_rows(program, task, rows) bind(c)
      import
      type(c_ptr), value :: program
      integer(c_int), value :: task
      integer(c_int64_t), value :: rows
      integer(c_int) :: cvy_program_set_rows
    end function cvy_program_set_rows
    function cvy_program_samples(program, task) bind(c)
      import
      type(c_ptr), value :: program
      integer(c_int), value :: task
      integer(c_int64_t) :: cvy_program_samples
    end function cvy_program_samples
    function cvy_program_write_input(program, task, input, dtype, data, elems) bind(c)
      import
      type(c_ptr), value :: program
      integer(c_int), value :: task
      type(c_ptr), value :: input
      integer(c_int), value :: dtype
      type(c_ptr), value :: data
      integer(c_int64_t), value :: elems
      integer(c_int) :: cvy_program_write_input
    end function cvy_program_write_input
    function cvy_program_step(program, task, learning_rate) bind(c)
      import
      type(c_ptr), value :: program
      integer(c_int), value :: task
      real(c_double), value :: learning_rate
      integer(c_int) :: cvy_program_step
    end function cvy_program_step
    function cvy_program_flush(program) bind(c)
      import
      type(c_ptr), value :: program
      integer(c_int) :: cvy_program_flush
    end function cvy_program_flush
    function cvy_program_loss(program, task, loss, value_out) bind(c)
      import
      type(c_ptr), value :: program
      integer(c_int), value :: task
      type(c_ptr), value :: loss
      real(c_double), intent(inout), optional :: value_out
      integer(c_int) :: cvy_program_loss
    end function cvy_program_loss
    function cvy_program_output(program, task, layer, data_out, shape_out) bind(c)
      import
      type(c_ptr), value :: program
      integer(c_int), value :: task
      type(c_ptr), value :: layer
      type(c_ptr), intent(inout), optional :: data_out
      type(cvy_shape), intent(inout), optional :: shape_out
      integer(c_int) :: cvy_program_output
    end function cvy_program_output
    function cvy_program_read_output(program, task, layer, dtype, data_out, elems) bind(c)
      import
      type(c_ptr), value :: program
      integer(c_int), value :: task
      type(c_ptr), value :: layer
      integer(c_int), value :: dtype
      type(c_ptr), value :: data_out
      integer(c_int64_t), value :: elems
      integer(c_int) :: cvy_program_read_output
    end function cvy_program_read_output
    function cvy_program_write_block(program, task, input, dtype, data, array, ghost) bind(c)
      import
      type(c_ptr), value :: program
      integer(c_int), value :: task
      type(c_ptr), value :: input
      integer(c_int), value :: dtype
      type(c_ptr), value :: data
      type(cvy_shape), intent(in), optional :: array
      integer(c_int64_t), intent(in), optional :: ghost
      integer(c_int) :: cvy_program_write_block
    end function cvy_program_write_block
    function cvy_program_read_block(program, task, layer, dtype, data, array, ghost) bind(c)
      import
      type(c_ptr), value :: program
      integer(c_int), value :: task
      type(c_ptr), value :: layer
      integer(c_int), value :: dtype
      type(c_ptr), value :: data
      type(cvy_shape), intent(in), optional :: array
      integer(c_int64_t), intent(in), optional :: ghost
      integer(c_int) :: cvy_program_read_block
    end function cvy_program_read_block
    function cvy_program_get(program, variable, plain_out, elems) bind(c)
      import
      type(c_ptr), value :: program
      type(c_ptr), value :: variable
      type(c_ptr), value :: plain_out
      integer(c_int64_t), value :: elems
      integer(c_int) :: cvy_program_get
    end function cvy_program_get
    function cvy_program_set(program, variable, plain, elems) bind(c)
      import
      type(c_ptr), value :: program
      type(c_ptr), value :: variable
      type(c_ptr), value :: plain
      integer(c_int64_t), value :: elems
      integer(c_int) :: cvy_program_set
    end function cvy_program_set
    function cvy_program_part(program, task, name, whole_out, first_out) bind(c)
      import
      type(c_ptr), value :: program
      integer(c_int), value :: task
      type(c_ptr), value :: name
      type(cvy_shape), intent(inout), optional :: whole_out
      integer(c_int64_t), intent(inout), optional :: first_out
      integer(c_int) :: cvy_program_part
    end function cvy_program_part
    function cvy_program_variable(program, i, name_out, shape_out) bind(c)
      import
      type(c_ptr), value :: program
      integer(c_int), value :: i
      type(c_ptr), intent(inout), optional :: name_out
      type(cvy_shape), intent(inout), optional :: shape_out
      integer(c_int) :: cvy_program_variable
    end function cvy_program_variable
    function cvy_program_save(program, path) bind(c)
      import
      type(c_ptr), value :: program
      type(c_ptr), value :: path
      integer(c_int) :: cvy_program_save
    end function cvy_program_save
    function cvy_program_load(program, path) bind(c)
      import
      type(c_ptr), value :: program
      type(c_ptr), value :: path
      integer(c_int) :: cvy_program_load
    end function cvy_program_load
    function cvy_program_print(program, task, how, text_out) bind(c)
      import
      type(c_ptr), value :: program
      integer(c_int), value :: task
      type(c_ptr), value :: how
      type(c_ptr), intent(inout), optional :: text_out
      integer(c_int) :: cvy_program_print
    end function cvy_program_print
    function cvy_program_bytes(program) bind(c)
      import
      type(c_ptr), value :: program
      integer(c_int64_t) :: cvy_program_bytes
    end function cvy_program_bytes
    function cvy_checkpoint_write(program, opts) bind(c)
      import
      type(c_ptr), value :: program
      type(cvy_checkpoint_opts), intent(in), optional :: opts
      integer(c_int) :: cvy_checkpoint_write
    end function cvy_checkpoint_write
    function cvy_checkpoint_read(program, folder, which, about_out) bind(c)
      import
      type(c_ptr), value :: program
      type(c_ptr), value :: folder
      type(c_ptr), value :: which
      type(cvy_checkpoint_about), intent(inout), optional :: about_out
      integer(c_int) :: cvy_checkpoint_read
    end function cvy_checkpoint_read
    function cvy_checkpoint_list(folder, check, entries_out) bind(c)
      import
      type(c_ptr), value :: folder
      integer(c_int), value :: check
      type(cvy_checkpoint_entries), intent(inout), optional :: entries_out
      integer(c_int) :: cvy_checkpoint_list
    end function cvy_checkpoint_list
    subroutine cvy_checkpoint_entries_release(entries) bind(c)
      import
      type(cvy_checkpoint_entries), intent(inout), optional :: entries
    end subroutine cvy_checkpoint_entries_release
    function cvy_run_convert(context, request, report_out) bind(c)
      import
      type(c_ptr), value :: context
      type(cvy_convert_request), intent(in), optional :: request
      type(c_ptr), intent(inout), optional :: report_out
      integer(c_int) :: cvy_run_convert
    end function cvy_run_convert
    function cvy_run_export(run, which, out, replace, step_out, notes_out) bind(c)
      import
      type(c_ptr), value :: run
      type(c_ptr), value :: which
      type(c_ptr), value :: out
      integer(c_int), value :: replace
      integer(c_int64_t), intent(inout), optional :: step_out
      type(c_ptr), intent(inout), optional :: notes_out
      integer(c_int) :: cvy_run_export
    end function cvy_run_export
    function cvy_run_formats(text_out) bind(c)
      import
      type(c_ptr), intent(inout), optional :: text_out
      integer(c_int) :: cvy_run_formats
    end function cvy_run_formats
    function cvy_data_open(source, opts, data_out) bind(c)
      import
      type(c_ptr), value :: source
      type(cvy_data_opts), intent(in), optional :: opts
      type(c_ptr), intent(inout) :: data_out
      integer(c_int) :: cvy_data_open
    end function cvy_data_open
    function cvy_data_split(data, share, seed, part, part_out) bind(c)
      import
      type(c_ptr), value :: data
      real(c_double), value :: share
      integer(c_int64_t), value :: seed
      integer(c_int), value :: part
      type(c_ptr), intent(inout) :: part_out
      integer(c_int) :: cvy_data_split
    end function cvy_data_split
    subroutine cvy_data_destroy(data) bind(c)
      import
      type(c_ptr), intent(inout) :: data
    end subroutine cvy_data_destroy
    function cvy_data_describe(data, about_out) bind(c)
      import
      type(c_ptr), value :: data
      type(cvy_data_about), intent(inout), optional :: about_out
      integer(c_int) :: cvy_data_describe
    end function cvy_data_describe
    function cvy_data_field(data, i, name_out, dtype_out, shape_out) bind(c)
      import
      type(c_ptr), value :: data
      integer(c_int), value :: i
      type(c_ptr), intent(inout), optional :: name_out
      integer(c_int), intent(inout), optional :: dtype_out
      type(cvy_shape), intent(inout), optional :: shape_out
      integer(c_int) :: cvy_data_field
    end function cvy_data_field
    function cvy_data_class(data, label) bind(c)
      import
      type(c_ptr), value :: data
      integer(c_int64_t), value :: label
      type(c_ptr) :: cvy_data_class
    end function cvy_data_class
    function cvy_data_loader_create(context, data, opts, loader_out) bind(c)
      import
      type(c_ptr), value :: context
      type(c_ptr), value :: data
      type(cvy_data_loader_opts), intent(in), optional :: opts
      type(c_ptr), intent(inout) :: loader_out
      integer(c_int) :: cvy_data_loader_create
    end function cvy_data_loader_create
    subroutine cvy_data_loader_destroy(loader) bind(c)
      import
      type(c_ptr), intent(inout) :: loader
    end subroutine cvy_data_loader_destroy
    function cvy_data_loader_next(loader, batch_out) bind(c)
      import
      type(c_ptr), value :: loader
      type(cvy_data_batch), intent(inout), optional :: batch_out
      integer(c_int) :: cvy_data_loader_next
    end function cvy_data_loader_next
    function cvy_data_loader_steps(loader) bind(c)
      import
      type(c_ptr), value :: loader
      integer(c_int64_t) :: cvy_data_loader_steps
    end function cvy_data_loader_steps
    function cvy_program_fill(program, task, batch) bind(c)
      import
      type(c_ptr), value :: program
      integer(c_int), value :: task
      type(cvy_data_batch), intent(in), optional :: batch
      integer(c_int) :: cvy_program_fill
    end function cvy_program_fill
    function cvy_run_read_job(job, nranks, out) bind(c)
      import
      type(cvy_job_source), intent(in), optional :: job
      integer(c_int), value :: nranks
      type(cvy_job_about), intent(inout), optional :: out
      integer(c_int) :: cvy_run_read_job
    end function cvy_run_read_job
    function cvy_run_job_value(job, key, text_out) bind(c)
      import
      type(cvy_job_source), intent(in), optional :: job
      type(c_ptr), value :: key
      type(c_ptr), intent(inout), optional :: text_out
      integer(c_int) :: cvy_run_job_value
    end function cvy_run_job_value
    function cvy_run_keys(text_out) bind(c)
      import
      type(c_ptr), intent(inout), optional :: text_out
      integer(c_int) :: cvy_run_keys
    end function cvy_run_keys
    function cvy_run_new_job(source, task, text_out) bind(c)
      import
      type(c_ptr), value :: source
      type(c_ptr), value :: task
      type(c_ptr), intent(inout), optional :: text_out
      integer(c_int) :: cvy_run_new_job
    end function cvy_run_new_job
    function cvy_run_import(path, opts, text_out) bind(c)
      import
      type(c_ptr), value :: path
      type(cvy_import_opts), intent(in), optional :: opts
      type(c_ptr), intent(inout), optional :: text_out
      integer(c_int) :: cvy_run_import
    end function cvy_run_import
    function cvy_run_model_job(name, text_out) bind(c)
      import
      type(c_ptr), value :: name
      type(c_ptr), intent(inout), optional :: text_out
      integer(c_int) :: cvy_run_model_job
    end function cvy_run_model_job
    function cvy_train_control_create(control_out) bind(c)
      import
      type(c_ptr), intent(inout) :: control_out
      integer(c_int) :: cvy_train_control_create
    end function cvy_train_control_create
    subroutine cvy_train_control_destroy(control) bind(c)
      import
      type(c_ptr), intent(inout) :: control
    end subroutine cvy_train_control_destroy
    subroutine cvy_train_control_request(control, request) bind(c)
      import
      type(c_ptr), value :: control
      integer(c_int), value :: request
    end subroutine cvy_train_control_request
    function cvy_train_control_is_stopping(control) bind(c)
      import
      type(c_ptr), value :: control
      integer(c_int) :: cvy_train_control_is_stopping
    end function cvy_train_control_is_stopping
    function cvy_train_control_longest_s(control) bind(c)
      import
      type(c_ptr), value :: control
      real(c_double) :: cvy_train_control_longest_s
    end function cvy_train_control_longest_s
    function cvy_run_train(context, job, opts, result_out) bind(c)
      import
      type(c_ptr), value :: context
      type(cvy_job_source), intent(in), optional :: job
      type(cvy_train_opts), intent(in), optional :: opts
      type(cvy_train_result), intent(inout), optional :: result_out
      integer(c_int) :: cvy_run_train
    end function cvy_run_train
    function cvy_run_doctor(context, opts, result_out) bind(c)
      import
      type(c_ptr), value :: context
      type(cvy_doctor_opts), intent(in), optional :: opts
      type(cvy_doctor_result), intent(inout), optional :: result_out
      integer(c_int) :: cvy_run_doctor
    end function cvy_run_doctor
    function cvy_doctor_result_json(result, text_out) bind(c)
      import
      type(cvy_doctor_result), intent(in), optional :: result
      type(c_ptr), intent(inout), optional :: text_out
      integer(c_int) :: cvy_doctor_result_json
    end function cvy_doctor_result_json
    function cvy_doctor_result_lines(result, text_out) bind(c)
      import
      type(cvy_doctor_result), intent(in), optional :: result
      type(c_ptr), intent(inout), optional :: text_out
      integer(c_int) :: cvy_doctor_result_lines
    end function cvy_doctor_result_lines
    subroutine cvy_doctor_result_release(result) bind(c)
      import
      type(cvy_doctor_result), intent(inout), optional :: result
    end subroutine cvy_doctor_result_release
    function cvy_run_selftest(context, opts, result_out) bind(c)
      import
      type(c_ptr), value :: context
      type(cvy_selftest_opts), intent(in), optional :: opts
      type(cvy_selftest_result), intent(inout), optional :: result_out
      integer(c_int) :: cvy_run_selftest
    end function cvy_run_selftest
    function cvy_selftest_result_json(result, text_out) bind(c)
      import
      type(cvy_selftest_result), intent(in), optional :: result
      type(c_ptr), intent(inout), optional :: text_out
      integer(c_int) :: cvy_selftest_result_json
    end function cvy_selftest_result_json
    function cvy_selftest_result_lines(result, text_out) bind(c)
      import
      type(cvy_selftest_result), intent(in), optional :: result
      type(c_ptr), intent(inout), optional :: text_out
      integer(c_int) :: cvy_selftest_result_lines
    end function cvy_selftest_result_lines
    subroutine cvy_selftest_result_release(result) bind(c)
      import
      type(cvy_selftest_result), intent(inout), optional :: result
    end subroutine cvy_selftest_result_release
    function cvy_run_study(opts, out) bind(c)
      import
      type(cvy_study_opts), intent(in), optional :: opts
      type(cvy_study_result), intent(inout), optional :: out
      integer(c_int) :: cvy_run_study
    end function cvy_run_study
    function cvy_study_nodes(opts, nodes_out, room, count_out) bind(c)
      import
      type(cvy_study_opts), intent(in), optional :: opts
      integer(c_int64_t), intent(inout), optional :: nodes_out
      integer(c_int), value :: room
      integer(c_int), intent(inout), optional :: count_out
      integer(c_int) :: cvy_study_nodes
    end function cvy_study_nodes
    function cvy_report_study(folder) bind(c)
      import
      type(c_ptr), value :: folder
      integer(c_int) :: cvy_report_study
    end function cvy_report_study
    function cvy_report_study_compare(before, after, path, moved_out) bind(c)
      import
      type(c_ptr), value :: before
      type(c_ptr), value :: after
      type(c_ptr), value :: path
      integer(c_int), intent(inout), optional :: moved_out
      integer(c_int) :: cvy_report_study_compare
    end function cvy_report_study_compare
    function cvy_run_tune(opts, out) bind(c)
      import
      type(cvy_tune_opts), intent(in), optional :: opts
      type(cvy_tune_result), intent(inout), optional :: out
      integer(c_int) :: cvy_run_tune
    end function cvy_run_tune
    function cvy_profile_read(path, out) bind(c)
      import
      type(c_ptr), value :: path
      type(cvy_profile), intent(inout), optional :: out
      integer(c_int) :: cvy_profile_read
    end function cvy_profile_read
    function cvy_run_summarize(run, summary_out) bind(c)
      import
      type(c_ptr), value :: run
      type(cvy_run_summary), intent(inout), optional :: summary_out
      integer(c_int) :: cvy_run_summarize
    end function cvy_run_summarize
    function cvy_run_list(folder, result_out) bind(c)
      import
      type(c_ptr), value :: folder
      type(cvy_run_list_result), intent(inout), optional :: result_out
      integer(c_int) :: cvy_run_list
    end function cvy_run_list
    function cvy_run_list_result_json(result, text_out) bind(c)
      import
      type(cvy_run_list_result), intent(in), optional :: result
      type(c_ptr), intent(inout), optional :: text_out
      integer(c_int) :: cvy_run_list_result_json
    end function cvy_run_list_result_json
    function cvy_run_list_result_lines(result, text_out) bind(c)
      import
      type(cvy_run_list_result), intent(in), optional :: result
      type(c_ptr), intent(inout), optional :: text_out
      integer(c_int) :: cvy_run_list_result_lines
    end function cvy_run_list_result_lines
    subroutine cvy_run_list_result_release(result) bind(c)
      import
      type(cvy_run_list_result), intent(inout), optional :: result
    end subroutine cvy_run_list_result_release
    function cvy_run_inspect(path, statistics, text_out) bind(c)
      import
      type(c_ptr), value :: path
      integer(c_int), value :: statistics
      type(c_ptr), intent(inout), optional :: text_out
      integer(c_int) :: cvy_run_inspect
    end function cvy_run_inspect
    function cvy_run_verify(path, damaged_out, text_out) bind(c)
      import
      type(c_ptr), value :: path
      integer(c_int), intent(inout), optional :: damaged_out
      type(c_ptr), intent(inout), optional :: text_out
      integer(c_int) :: cvy_run_verify
    end function cvy_run_verify
    function cvy_metric_open(metric, output, metric_out) bind(c)
      import
      type(c_ptr), value :: metric
      type(cvy_shape), intent(in), optional :: output
      type(c_ptr), intent(inout) :: metric_out
      integer(c_int) :: cvy_metric_open
    end function cvy_metric_open
    function cvy_metric_add_rows(metric, batch) bind(c)
      import
      type(c_ptr), value :: metric
      type(cvy_metric_batch), intent(in), optional :: batch
      integer(c_int) :: cvy_metric_add_rows
    end function cvy_metric_add_rows
    function cvy_metric_reduce(metric, context, value_out) bind(c)
      import
      type(c_ptr), value :: metric
      type(c_ptr), value :: context
      real(c_double), intent(inout), optional :: value_out
      integer(c_int) :: cvy_metric_reduce
    end function cvy_metric_reduce
    function cvy_metric_higher_is_better(metric) bind(c)
      import
      type(c_ptr), value :: metric
      integer(c_int) :: cvy_metric_higher_is_better
    end function cvy_metric_higher_is_better
    subroutine cvy_metric_destroy(metric) bind(c)
      import
      type(c_ptr), intent(inout) :: metric
    end subroutine cvy_metric_destroy
    function cvy_network_open(context, target, opts, network_out) bind(c)
      import
      type(c_ptr), value :: context
      type(c_ptr), value :: target
      type(cvy_network_opts), intent(in), optional :: opts
      type(c_ptr), intent(inout) :: network_out
      integer(c_int) :: cvy_network_open
    end function cvy_network_open
    subroutine cvy_network_destroy(network) bind(c)
      import
      type(c_ptr), intent(inout) :: network
    end subroutine cvy_network_destroy
    function cvy_network_describe(network, about_out) bind(c)
      import
      type(c_ptr), value :: network
      type(cvy_network_about), intent(inout), optional :: about_out
      integer(c_int) :: cvy_network_describe
    end function cvy_network_describe
    function cvy_network_input(network, i, name_out, dtype_out, shape_out) bind(c)
      import
      type(c_ptr), value :: network
      integer(c_int), value :: i
      type(c_ptr), intent(inout), optional :: name_out
      integer(c_int), intent(inout), optional :: dtype_out
      type(cvy_shape), intent(inout), optional :: shape_out
      integer(c_int) :: cvy_network_input
    end function cvy_network_input
    function cvy_network_output(network, i, name_out, shape_out) bind(c)
      import
      type(c_ptr), value :: network
      integer(c_int), value :: i
      type(c_ptr), intent(inout), optional :: name_out
      type(cvy_shape), intent(inout), optional :: shape_out
      integer(c_int) :: cvy_network_output
    end function cvy_network_output
    function cvy_network_output_kind(network, i, kind_out) bind(c)
      import
      type(c_ptr), value :: network
      integer(c_int), value :: i
      integer(c_int), intent(inout), optional :: kind_out
      integer(c_int) :: cvy_network_output_kind
    end function cvy_network_output_kind
    function cvy_network_class(network, label) bind(c)
      import
      type(c_ptr), value :: network
      integer(c_int64_t), value :: label
      type(c_ptr) :: cvy_network_class
    end function cvy_network_class
    function cvy_network_apply(network, n, in, nin, out, nout) bind(c)
      import
      type(c_ptr), value :: network
      integer(c_int64_t), value :: n
      type(cvy_network_in), intent(in) :: in(*)
      integer(c_int), value :: nin
      type(cvy_network_out), intent(in) :: out(*)
      integer(c_int), value :: nout
      integer(c_int) :: cvy_network_apply
    end function cvy_network_apply
    function cvy_network_check_input(network, described, notes_out) bind(c)
      import
      type(c_ptr), value :: network
      type(c_ptr), value :: described
      type(c_ptr), intent(inout), optional :: notes_out
      integer(c_int) :: cvy_network_check_input
    end function cvy_network_check_input
    function cvy_shared_network_create(context, network, shared_out) bind(c)
      import
      type(c_ptr), value :: context
      type(c_ptr), value :: network
      type(c_ptr), intent(inout) :: shared_out
      integer(c_int) :: cvy_shared_network_create
    end function cvy_shared_network_create
    subroutine cvy_shared_network_destroy(shared) bind(c)
      import
      type(c_ptr), intent(inout) :: shared
    end subroutine cvy_shared_network_destroy
    function cvy_shared_network_apply(shared, n, in, nin, out, nout) bind(c)
      import
      type(c_ptr), value :: shared
      integer(c_int64_t), value :: n
      type(cvy_network_in), intent(in) :: in(*)
      integer(c_int), value :: nin
      type(cvy_network_out), intent(in) :: out(*)
      integer(c_int), value :: nout
      integer(c_int) :: cvy_shared_network_apply
    end function cvy_shared_network_apply
    function cvy_network_export(network, path, opts, notes_out) bind(c)
      import
      type(c_ptr), value :: network
      type(c_ptr), value :: path
      type(cvy_network_export_opts), intent(in), optional :: opts
      type(c_ptr), intent(inout), optional :: notes_out
      integer(c_int) :: cvy_network_export
    end function cvy_network_export
    function cvy_context_load_library(context, path) bind(c)
      import
      type(c_ptr), value :: context
      type(c_ptr), value :: path
      integer(c_int) :: cvy_context_load_library
    end function cvy_context_load_library
    function cvy_context_add_operator(context, op) bind(c)
      import
      type(c_ptr), value :: context
      type(cvy_operator), intent(in), optional :: op
      integer(c_int) :: cvy_context_add_operator
    end function cvy_context_add_operator
    function cvy_reducer_create(context, opts, reducer_out) bind(c)
      import
      type(c_ptr), value :: context
      type(cvy_reducer_opts), intent(in), optional :: opts
      type(c_ptr), intent(inout) :: reducer_out
      integer(c_int) :: cvy_reducer_create
    end function cvy_reducer_create
    subroutine cvy_reducer_destroy(reducer) bind(c)
      import
      type(c_ptr), intent(inout) :: reducer
    end subroutine cvy_reducer_destroy
    function cvy_reducer_add(reducer, name, count, dtype, index_out) bind(c)
      import
      type(c_ptr), value :: reducer
      type(c_ptr), value :: name
      integer(c_int64_t), value :: count
      integer(c_int), value :: dtype
      integer(c_int), intent(inout), optional :: index_out
      integer(c_int) :: cvy_reducer_add
    end function cvy_reducer_add
    function cvy_reducer_ready(reducer) bind(c)
      import
      type(c_ptr), value :: reducer
      integer(c_int) :: cvy_reducer_ready
    end function cvy_reducer_ready
    function cvy_reducer_buffer(reducer, index) bind(c)
      import
      type(c_ptr), value :: reducer
      integer(c_int), value :: index
      type(c_ptr) :: cvy_reducer_buffer
    end function cvy_reducer_buffer
    function cvy_reducer_sum(reducer, index) bind(c)
      import
      type(c_ptr), value :: reducer
      integer(c_int), value :: index
      type(c_ptr) :: cvy_reducer_sum
    end function cvy_reducer_sum
    function cvy_reducer_start(reducer, index) bind(c)
      import
      type(c_ptr), value :: reducer
      integer(c_int), value :: index
      integer(c_int) :: cvy_reducer_start
    end function cvy_reducer_start
    function cvy_reducer_progress(reducer) bind(c)
      import
      type(c_ptr), value :: reducer
      integer(c_int) :: cvy_reducer_progress
    end function cvy_reducer_progress
    function cvy_reducer_wait(reducer, index) bind(c)
      import
      type(c_ptr), value :: reducer
      integer(c_int), value :: index
      integer(c_int) :: cvy_reducer_wait
    end function cvy_reducer_wait
    function cvy_reducer_broadcast(reducer, root) bind(c)
      import
      type(c_ptr), value :: reducer
      integer(c_int), value :: root
      integer(c_int) :: cvy_reducer_broadcast
    end function cvy_reducer_broadcast
    function cvy_context_broadcast(context, data, bytes, root) bind(c)
      import
      type(c_ptr), value :: context
      type(c_ptr), value :: data
      integer(c_size_t), value :: bytes
      integer(c_int), value :: root
      integer(c_int) :: cvy_context_broadcast
    end function cvy_context_broadcast
    function cvy_report_write(run_folder) bind(c)
      import
      type(c_ptr), value :: run_folder
      integer(c_int) :: cvy_report_write
    end function cvy_report_write
    function cvy_report_json(run_folder, text_out) bind(c)
      import
      type(c_ptr), value :: run_folder
      type(c_ptr), intent(inout), optional :: text_out
      integer(c_int) :: cvy_report_json
    end function cvy_report_json
    function cvy_report_compare(run_folders, count, path) bind(c)
      import
      type(c_ptr), value :: run_folders
      integer(c_int), value :: count
      type(c_ptr), value :: path
      integer(c_int) :: cvy_report_compare
    end function cvy_report_compare
    function cvy_report_ensemble(folder) bind(c)
      import
      type(c_ptr), value :: folder
      integer(c_int) :: cvy_report_ensemble
    end function cvy_report_ensemble
    function cvy_report_sweep(folder) bind(c)
      import
      type(c_ptr), value :: folder
      integer(c_int) :: cvy_report_sweep
    end function cvy_report_sweep
    function cvy_schedule_open(schedule, opts, schedule_out) bind(c)
      import
      type(c_ptr), value :: schedule
      type(cvy_schedule_opts), intent(in), optional :: opts
      type(c_ptr), intent(inout) :: schedule_out
      integer(c_int) :: cvy_schedule_open
    end function cvy_schedule_open
    function cvy_schedule_lr(schedule, samples) bind(c)
      import
      type(c_ptr), value :: schedule
      real(c_double), value :: samples
      real(c_double) :: cvy_schedule_lr
    end function cvy_schedule_lr
    subroutine cvy_schedule_destroy(schedule) bind(c)
      import
      type(c_ptr), intent(inout) :: schedule
    end subroutine cvy_schedule_destroy
    function cvy_run_test(context, target, job, data, result_out) bind(c)
      import
      type(c_ptr), value :: context
      type(c_ptr), value :: target
      type(cvy_job_source), intent(in), optional :: job
      type(c_ptr), value :: data
      type(cvy_test_result), intent(inout), optional :: result_out
      integer(c_int) :: cvy_run_test
    end function cvy_run_test
    function cvy_test_result_json(result, text_out) bind(c)
      import
      type(cvy_test_result), intent(in), optional :: result
      type(c_ptr), intent(inout), optional :: text_out
      integer(c_int) :: cvy_test_result_json
    end function cvy_test_result_json
    subroutine cvy_test_result_release(result) bind(c)
      import
      type(cvy_test_result), intent(inout), optional :: result
    end subroutine cvy_test_result_release
    function cvy_run_calibrate(context, run, data, result_out) bind(c)
      import
      type(c_ptr), value :: context
      type(c_ptr), value :: run
      type(c_ptr), value :: data
      type(cvy_calibration_result), intent(inout), optional :: result_out
      integer(c_int) :: cvy_run_calibrate
    end function cvy_run_calibrate
    function cvy_run_test_ensemble(context, target, ntarget, data, calibrated, scores_out) bind(c)
      import
      type(c_ptr), value :: context
      type(c_ptr), value :: target
      integer(c_int), value :: ntarget
      type(c_ptr), value :: data
      integer(c_int), value :: calibrated
      type(cvy_ensemble_scores), intent(inout), optional :: scores_out
      integer(c_int) :: cvy_run_test_ensemble
    end function cvy_run_test_ensemble
    function cvy_ensemble_scores_json(scores, text_out) bind(c)
      import
      type(cvy_ensemble_scores), intent(in), optional :: scores
      type(c_ptr), intent(inout), optional :: text_out
      integer(c_int) :: cvy_ensemble_scores_json
    end function cvy_ensemble_scores_json
    function cvy_is_ensemble(path) bind(c)
      import
      type(c_ptr), value :: path
      integer(c_int) :: cvy_is_ensemble
    end function cvy_is_ensemble
    subroutine cvy_ensemble_scores_release(scores) bind(c)
      import
      type(cvy_ensemble_scores), intent(inout), optional :: scores
    end subroutine cvy_ensemble_scores_release
    function cvy_run_checkpoint(run, name_out) bind(c)
      import
      type(c_ptr), value :: run
      type(c_ptr), intent(inout), optional :: name_out
      integer(c_int) :: cvy_run_checkpoint
    end function cvy_run_checkpoint
    function cvy_run_predict(context, request) bind(c)
      import
      type(c_ptr), value :: context
      type(cvy_predict_request), intent(in), optional :: request
      integer(c_int) :: cvy_run_predict
    end function cvy_run_predict
    function cvy_site_open(program, site_out) bind(c)
      import
      type(c_ptr), value :: program
      type(c_ptr), intent(inout) :: site_out
      integer(c_int) :: cvy_site_open
    end function cvy_site_open
    subroutine cvy_site_destroy(site) bind(c)
      import
      type(c_ptr), intent(inout) :: site
    end subroutine cvy_site_destroy
    function cvy_site_describe(site, about_out) bind(c)
      import
      type(c_ptr), value :: site
      type(cvy_site_about), intent(inout), optional :: about_out
      integer(c_int) :: cvy_site_describe
    end function cvy_site_describe
    function cvy_reservoir_create(opts, reservoir_out) bind(c)
      import
      type(cvy_reservoir_opts), intent(in), optional :: opts
      type(c_ptr), intent(inout) :: reservoir_out
      integer(c_int) :: cvy_reservoir_create
    end function cvy_reservoir_create
    subroutine cvy_reservoir_destroy(reservoir) bind(c)
      import
      type(c_ptr), intent(inout) :: reservoir
    end subroutine cvy_reservoir_destroy
    function cvy_reservoir_add_field(reservoir, name, dtype, sample_shape) bind(c)
      import
      type(c_ptr), value :: reservoir
      type(c_ptr), value :: name
      integer(c_int), value :: dtype
      type(cvy_shape), intent(in), optional :: sample_shape
      integer(c_int) :: cvy_reservoir_add_field
    end function cvy_reservoir_add_field
    function cvy_reservoir_field(reservoir, i, name_out, dtype_out, shape_out) bind(c)
      import
      type(c_ptr), value :: reservoir
      integer(c_int), value :: i
      type(c_ptr), intent(inout), optional :: name_out
      integer(c_int), intent(inout), optional :: dtype_out
      type(cvy_shape), intent(inout), optional :: shape_out
      integer(c_int) :: cvy_reservoir_field
    end function cvy_reservoir_field
    function cvy_reservoir_put(reservoir, field, dtype, data, elems) bind(c)
      import
      type(c_ptr), value :: reservoir
      type(c_ptr), value :: field
      integer(c_int), value :: dtype
      type(c_ptr), value :: data
      integer(c_int64_t), value :: elems
      integer(c_int) :: cvy_reservoir_put
    end function cvy_reservoir_put
    function cvy_reservoir_push(reservoir) bind(c)
      import
      type(c_ptr), value :: reservoir
      integer(c_int) :: cvy_reservoir_push
    end function cvy_reservoir_push
    function cvy_reservoir_held(reservoir) bind(c)
      import
      type(c_ptr), value :: reservoir
      integer(c_int64_t) :: cvy_reservoir_held
    end function cvy_reservoir_held
    function cvy_reservoir_seen(reservoir) bind(c)
      import
      type(c_ptr), value :: reservoir
      integer(c_int64_t) :: cvy_reservoir_seen
    end function cvy_reservoir_seen
    function cvy_reservoir_draw(reservoir, program, task) bind(c)
      import
      type(c_ptr), value :: reservoir
      type(c_ptr), value :: program
      integer(c_int), value :: task
      integer(c_int) :: cvy_reservoir_draw
    end function cvy_reservoir_draw
    function cvy_reservoir_set_losses(reservoir, losses, n) bind(c)
      import
      type(c_ptr), value :: reservoir
      real(c_double), intent(in), optional :: losses
      integer(c_int64_t), value :: n
      integer(c_int) :: cvy_reservoir_set_losses
    end function cvy_reservoir_set_losses
    function cvy_reservoir_bytes(reservoir) bind(c)
      import
      type(c_ptr), value :: reservoir
      integer(c_int64_t) :: cvy_reservoir_bytes
    end function cvy_reservoir_bytes
    function cvy_reservoir_save(reservoir, memory, bytes) bind(c)
      import
      type(c_ptr), value :: reservoir
      type(c_ptr), value :: memory
      integer(c_int64_t), value :: bytes
      integer(c_int) :: cvy_reservoir_save
    end function cvy_reservoir_save
    function cvy_reservoir_load(reservoir, memory, bytes) bind(c)
      import
      type(c_ptr), value :: reservoir
      type(c_ptr), value :: memory
      integer(c_int64_t), value :: bytes
      integer(c_int) :: cvy_reservoir_load
    end function cvy_reservoir_load
    function cvy_stream_create(context, opts, stream_out) bind(c)
      import
      type(c_ptr), value :: context
      type(cvy_stream_opts), intent(in), optional :: opts
      type(c_ptr), intent(inout) :: stream_out
      integer(c_int) :: cvy_stream_create
    end function cvy_stream_create
    subroutine cvy_stream_destroy(stream) bind(c)
      import
      type(c_ptr), intent(inout) :: stream
    end subroutine cvy_stream_destroy
    function cvy_stream_field(stream, i, name_out, dtype_out, shape_out) bind(c)
      import
      type(c_ptr), value :: stream
      integer(c_int), value :: i
      type(c_ptr), intent(inout), optional :: name_out
      integer(c_int), intent(inout), optional :: dtype_out
      type(cvy_shape), intent(inout), optional :: shape_out
      integer(c_int) :: cvy_stream_field
    end function cvy_stream_field
    function cvy_stream_put(stream, field, dtype, data, elems) bind(c)
      import
      type(c_ptr), value :: stream
      type(c_ptr), value :: field
      integer(c_int), value :: dtype
      type(c_ptr), value :: data
      integer(c_int64_t), value :: elems
      integer(c_int) :: cvy_stream_put
    end function cvy_stream_put
    function cvy_stream_push(stream) bind(c)
      import
      type(c_ptr), value :: stream
      integer(c_int) :: cvy_stream_push
    end function cvy_stream_push
    function cvy_stream_flush(stream, seconds) bind(c)
      import
      type(c_ptr), value :: stream
      real(c_double), value :: seconds
      integer(c_int) :: cvy_stream_flush
    end function cvy_stream_flush
    function cvy_stream_take(stream, version_out) bind(c)
      import
      type(c_ptr), value :: stream
      integer(c_int64_t), intent(inout), optional :: version_out
      integer(c_int) :: cvy_stream_take
    end function cvy_stream_take
    function cvy_stream_receive(stream) bind(c)
      import
      type(c_ptr), value :: stream
      integer(c_int) :: cvy_stream_receive
    end function cvy_stream_receive
    function cvy_stream_publish(stream) bind(c)
      import
      type(c_ptr), value :: stream
      integer(c_int) :: cvy_stream_publish
    end function cvy_stream_publish
    function cvy_stream_get_counts(stream, counts_out) bind(c)
      import
      type(c_ptr), value :: stream
      type(cvy_stream_counts), intent(inout), optional :: counts_out
      integer(c_int) :: cvy_stream_get_counts
    end function cvy_stream_get_counts
    function cvy_run_bench(context, opts, result_out) bind(c)
      import
      type(c_ptr), value :: context
      type(cvy_bench_opts), intent(in), optional :: opts
      type(cvy_bench_result), intent(inout), optional :: result_out
      integer(c_int) :: cvy_run_bench
    end function cvy_run_bench
    function cvy_bench_result_json(result, text_out) bind(c)
      import
      type(cvy_bench_result), intent(in), optional :: result
      type(c_ptr), intent(inout), optional :: text_out
      integer(c_int) :: cvy_bench_result_json
    end function cvy_bench_result_json
    function cvy_bench_result_lines(result, text_out) bind(c)
      import
      type(cvy_bench_result), intent(in), optional :: result
      type(c_ptr), intent(inout), optional :: text_out
      integer(c_int) :: cvy_bench_result_lines
    end function cvy_bench_result_lines
    function cvy_run_time(context, opts, how, text_out) bind(c)
      import
      type(c_ptr), value :: context
      type(cvy_bench_opts), intent(in), optional :: opts
      type(c_ptr), value :: how
      type(c_ptr), intent(inout), optional :: text_out
      integer(c_int) :: cvy_run_time
    end function cvy_run_time
    function cvy_run_check(context, opts, against, result_out) bind(c)
      import
      type(c_ptr), value :: context
      type(cvy_bench_opts), intent(in), optional :: opts
      type(c_ptr), value :: against
      type(cvy_check_result), intent(inout), optional :: result_out
      integer(c_int) :: cvy_run_check
    end function cvy_run_check
    function cvy_check_result_json(result, text_out) bind(c)
      import
      type(cvy_check_result), intent(in), optional :: result
      type(c_ptr), intent(inout), optional :: text_out
      integer(c_int) :: cvy_check_result_json
    end function cvy_check_result_json
    function cvy_check_result_lines(result, text_out) bind(c)
      import
      type(cvy_check_result), intent(in), optional :: result
      type(c_ptr), intent(inout), optional :: text_out
      integer(c_int) :: cvy_check_result_lines
    end function cvy_check_result_lines
    function cvy_run_plan(context, job, plan_file, how, text_out) bind(c)
      import
      type(c_ptr), value :: context
      type(cvy_job_source), intent(in), optional :: job
      type(c_ptr), value :: plan_file
      type(c_ptr), value :: how
      type(c_ptr), intent(inout), optional :: text_out
      integer(c_int) :: cvy_run_plan
    end function cvy_run_plan
    function cvy_run_bench_plan(context, opts, how, text_out) bind(c)
      import
      type(c_ptr), value :: context
      type(cvy_bench_opts), intent(in), optional :: opts
      type(c_ptr), value :: how
      type(c_ptr), intent(inout), optional :: text_out
      integer(c_int) :: cvy_run_bench_plan
    end function cvy_run_bench_plan
    function cvy_run_plan_grids(context, what, opts, text_out) bind(c)
      import
      type(c_ptr), value :: context
      type(cvy_bench_opts), intent(in), optional :: what
      type(cvy_grids_opts), intent(in), optional :: opts
      type(c_ptr), intent(inout), optional :: text_out
      integer(c_int) :: cvy_run_plan_grids
    end function cvy_run_plan_grids
    function cvy_run_bench_data(opts, result_out) bind(c)
      import
      type(cvy_bench_data_opts), intent(in), optional :: opts
      type(cvy_bench_data_result), intent(inout), optional :: result_out
      integer(c_int) :: cvy_run_bench_data
    end function cvy_run_bench_data
    function cvy_bench_data_result_json(result, text_out) bind(c)
      import
      type(cvy_bench_data_result), intent(in), optional :: result
      type(c_ptr), intent(inout), optional :: text_out
      integer(c_int) :: cvy_bench_data_result_json
    end function cvy_bench_data_result_json
    function cvy_bench_data_result_lines(result, text_out) bind(c)
      import
      type(cvy_bench_data_result), intent(in), optional :: result
      type(c_ptr), intent(inout), optional :: text_out
      integer(c_int) :: cvy_bench_data_result_lines
    end function cvy_bench_data_result_lines
    function cvy_run_platform(opts, out) bind(c)
      import
      type(cvy_platform_opts), intent(in), optional :: opts
      type(cvy_platform), intent(inout), optional :: out
      integer(c_int) :: cvy_run_platform
    end function cvy_run_platform
    function cvy_run_check_operators(context, path, opts, result_out) bind(c)
      import
      type(c_ptr), value :: context
      type(c_ptr), value :: path
      type(cvy_operators_opts), intent(in), optional :: opts
      type(cvy_operators_result), intent(inout), optional :: result_out
      integer(c_int) :: cvy_run_check_operators
    end function cvy_run_check_operators
    function cvy_run_sweep(context, path, opts, result_out) bind(c)
      import
      type(c_ptr), value :: context
      type(c_ptr), value :: path
      type(cvy_sweep_opts), intent(in), optional :: opts
      type(cvy_sweep_result), intent(inout), optional :: result_out
      integer(c_int) :: cvy_run_sweep
    end function cvy_run_sweep
    function cvy_sweep_table(folder, rows, text_out) bind(c)
      import
      type(c_ptr), value :: folder
      integer(c_int), value :: rows
      type(c_ptr), intent(inout), optional :: text_out
      integer(c_int) :: cvy_sweep_table
    end function cvy_sweep_table
    subroutine cvy_mpi_prepare() bind(c)
      import
    end subroutine cvy_mpi_prepare
    function cvy_context_create_mpi_fortran(comm, opts, context_out) bind(c)
      import
      integer(c_int), value :: comm
      type(cvy_context_opts), intent(in), optional :: opts
      type(c_ptr), intent(inout) :: context_out
      integer(c_int) :: cvy_context_create_mpi_fortran
    end function cvy_context_create_mpi_fortran
  end interface
end module convoy_c
