# SPDX-License-Identifier: BSD-3-Clause
"""convoy_check.py: runs `convoy selftest` as a regression test of ReFrame (version 4).

    reframe -C SITE.py -c convoy_check.py -r -S modules=convoy -P nranks=1,8,64
    reframe -C SITE.py -c convoy_check.py -r -S convoy=$HOME/convoy/bin/convoy -S out=$SCRATCH -S nranks=4

A test passes if no check of the self-test has failed and the launcher has started as many ranks as were asked for.
Without a module, the command is looked for in PATH. Its performance values are the seconds of the self-test and the
number of checks that have passed; they have no reference values, since these depend on the site.
"""
import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import performance_function, run_before, sanity_function, variable


@rfm.simple_test
class ConvoySelftest(rfm.RunOnlyRegressionTest):
    """The self-test on several numbers of ranks."""

    descr = 'convoy selftest: kernels, sums, training, files and signals of an installed copy'
    valid_systems = ['*']
    valid_prog_environs = ['*']
    time_limit = '10m'

    #: The number of ranks; `-P nranks=1,8,64` makes a test for each.
    nranks = variable(int, value=2, loggable=True)
    #: The command: a path, or a name that a module puts into PATH.
    convoy = variable(str, value='convoy')
    #: The folder in which files are tried; the test's own stage folder if it is empty.
    out = variable(str, value='')
    #: Compute threads of a rank; 0: the cores that the launcher gives to it.
    threads = variable(int, value=0)
    #: Ranks of a node; 0: the launcher decides.
    ranks_per_node = variable(int, value=0)

    @run_before('setup')  # -P sets variables after init
    def set_command(self):
        self.num_tasks = self.nranks
        self.executable = self.convoy
        self.executable_opts = ['selftest', '--ranks', str(self.nranks)]
        if self.out:
            self.executable_opts += ['--out', self.out]
        if self.threads:
            self.executable_opts += ['--threads', str(self.threads)]
            self.num_cpus_per_task = self.threads
        if self.ranks_per_node:
            self.num_tasks_per_node = self.ranks_per_node

    @run_before('run')
    def say_version(self):
        self.prerun_cmds = [f'{self.convoy} info']

    @sanity_function
    def all_checks_pass(self):
        failed = sn.extractsingle(r'^selftest: \d+ checks? passed, (?P<failed>\d+) failed, \d+ skipped, \d+ s$',
                                  self.stdout, 'failed', int)
        return sn.all([
            sn.assert_not_found(r'^FAILED ', self.stdout),
            sn.assert_found(rf'^ok +ranks +{self.nranks} ranks? on ', self.stdout),
            sn.assert_eq(failed, 0, msg='{0} checks of convoy selftest have failed: see its output'),
            sn.assert_eq(self.job.exitcode, 0, msg='convoy selftest ends with exit code {0}'),
        ])

    @performance_function('s', perf_key='duration')
    def seconds(self):
        return sn.extractsingle(r'^selftest: .* skipped, (?P<seconds>\d+) s$', self.stdout, 'seconds', float)

    @performance_function('checks', perf_key='passed')
    def passed(self):
        return sn.extractsingle(r'^selftest: (?P<passed>\d+) checks? passed', self.stdout, 'passed', int)
