#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# make_netcdf.py FOLDER: writes sky0.nc and sky1.nc by netCDF4, for the tests of axes and coordinates (netCDF4 1.7.5,
# which has netCDF 4.9). Time is unlimited. In wind it is the last axis, and the level has no coordinates. pressure is
# packed, and lacks a number in the first sample of sky0.nc.
import sys

import netCDF4
import numpy as np

TIME, LAT, LON, LEVEL = 4, 3, 5, 2


def write(path, first):
    with netCDF4.Dataset(path, "w") as d:
        for name, n in (("time", None), ("lat", LAT), ("lon", LON), ("level", LEVEL)):
            d.createDimension(name, n)
        time = d.createVariable("time", "i4", ("time",))
        time.units, time.calendar, time.standard_name = "hours since 2000-01-01 00:00:00", "gregorian", "time"
        lat = d.createVariable("lat", "f4", ("lat",))
        lat.units, lat.standard_name = "degrees_north", "latitude"
        lon = d.createVariable("lon", "f8", ("lon",))
        lon.units, lon.long_name = "degrees_east", "longitude of the grid"
        pressure = d.createVariable("pressure", "i2", ("time", "lat", "lon"), fill_value=-32768)
        pressure.scale_factor, pressure.add_offset = 0.5, 1000.0
        wind = d.createVariable("wind", "f4", ("level", "lat", "lon", "time"))
        rain = d.createVariable("rain", "f4", ("time", "lat", "lon"))
        time[:] = 6 * (first + np.arange(TIME))
        lat[:], lon[:] = 50 - 10 * np.arange(LAT), 2.5 * np.arange(LON)
        number = np.arange(first * LAT * LON, (first + TIME) * LAT * LON).reshape(TIME, LAT, LON)
        pressure[:] = np.ma.masked_equal(1000 + 0.5 * number, 1000 + 3.5)
        rain[:] = number
        wind[:] = np.moveaxis(np.stack([number, -number], 1), 0, -1)


write(sys.argv[1] + "/sky0.nc", 0)
write(sys.argv[1] + "/sky1.nc", TIME)
