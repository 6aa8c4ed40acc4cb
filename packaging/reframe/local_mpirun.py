# SPDX-License-Identifier: BSD-3-Clause
"""local_mpirun.py: a site file of ReFrame for one machine without a batch system, whose ranks are started by mpirun.

    reframe -C local_mpirun.py -c convoy_check.py -r --system workstation:mpirun -S convoy=/path/of/convoy
"""
site_configuration = {
    'systems': [{
        'name': 'workstation',
        'descr': 'one machine without a batch system',
        'hostnames': ['.*'],
        'partitions': [
            {'name': 'mpirun', 'scheduler': 'local', 'launcher': 'mpirun', 'environs': ['builtin']},
            {'name': 'alone', 'scheduler': 'local', 'launcher': 'local', 'environs': ['builtin']},
        ],
    }],
    'environments': [{'name': 'builtin', 'cc': 'cc', 'cxx': '', 'ftn': ''}],
}
