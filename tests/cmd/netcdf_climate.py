# SPDX-License-Identifier: BSD-3-Clause
"""Files as climate models and archives have them, for tests/cmd/netcdf_climate.sh.

    netcdf_climate.py make              month1.nc, month2.nc (netCDF4), station.nc (xarray), classic?.nc (NetCDF-3)
    netcdf_climate.py converted FOLDER  FOLDER, which `convoy convert` wrote from both months, has what netCDF4 reads
    netcdf_climate.py predicted FILE    FILE, which `convoy predict` wrote for both months, has their axes, for xarray

Code 77: a package is missing.
"""
import sys

try:
    import dask  # xarray's open_mfdataset() needs it
    import netCDF4
    import numpy as np
    import xarray
except ImportError as missing:
    print(missing)
    sys.exit(77)

LEVEL, LAT, LON = 5, 6, 4
MONTHS = (("month1.nc", "hours since 2000-01-01", 31), ("month2.nc", "hours since 2000-02-01 00:00:0.0", 29))


def month(path, since, days, seed):
    """t is packed as shorts, by other numbers in each month, with a fill value that is also a missing value. sst has a
    fill value, two missing values and a valid range. rain is the target. Times have bounds."""
    rng = np.random.default_rng(seed)
    with netCDF4.Dataset(path, "w") as d:
        d.Conventions = "CF-1.8"
        for name, n in (("time", None), ("lev", LEVEL), ("lat", LAT), ("lon", LON)):
            d.createDimension(name, n)
        time = d.createVariable("time", "i4", ("time",))
        time.units, time.calendar, time.standard_name, time.axis = since, "gregorian", "time", "T"
        lev = d.createVariable("lev", "f8", ("lev",))
        lev.units, lev.standard_name, lev.positive, lev.axis = "hPa", "air_pressure", "down", "Z"
        lat = d.createVariable("lat", "f4", ("lat",))
        lat.units, lat.standard_name, lat.axis = "degrees_north", "latitude", "Y"
        lon = d.createVariable("lon", "f4", ("lon",))
        lon.units, lon.standard_name, lon.axis = "degrees_east", "longitude", "X"
        time[:] = 24 * np.arange(days)
        lev[:], lat[:], lon[:] = [1000, 850, 700, 500, 250], np.linspace(-75, 75, LAT), 90 * np.arange(LON)

        t = d.createVariable("t", "i2", ("time", "lev", "lat", "lon"), fill_value=-32767, zlib=True)
        t.scale_factor, t.add_offset, t.missing_value = 0.001 * (1 + seed), 250 + 3.5 * seed, np.int16(-32767)
        t.units, t.long_name = "K", "air temperature"
        t.set_auto_maskandscale(False)
        packed = rng.integers(-20000, 20000, (days, LEVEL, LAT, LON)).astype("i2")
        packed[rng.random(packed.shape) < 0.1] = -32767
        t[:] = packed

        sst = d.createVariable("sst", "f4", ("time", "lat", "lon"), fill_value=np.float32(1e20))
        sst.missing_value, sst.valid_range = np.array([1e20, -999], "f4"), np.array([270, 310], "f4")
        sst.set_auto_maskandscale(False)
        values = rng.normal(290, 12, (days, LAT, LON)).astype("f4")
        values[rng.random(values.shape) < 0.05] = 1e20
        values[rng.random(values.shape) < 0.05] = -999
        sst[:] = values

        rain = d.createVariable("rain", "f4", ("time", "lat", "lon"))
        rain.units, rain.standard_name, rain.long_name = "mm day-1", "lwe_precipitation_rate", "daily rain"
        rain[:] = rng.gamma(2, 1, (days, LAT, LON)).astype("f4")
        d.createDimension("nv", 2)
        time.bounds = "time_bnds"
        d.createVariable("time_bnds", "f8", ("time", "nv"))[:] = np.stack([time[:], time[:] + 24], 1)


def make():
    for seed, (path, since, days) in enumerate(MONTHS):
        month(path, since, days, seed)
    # xarray: the times are datetimes in the last axis, no axis is unlimited, and numbers are packed by an encoding.
    days = np.datetime64("2001-03-01", "ns") + np.arange(9) * np.timedelta64(1, "D")
    wind = np.random.default_rng(5).normal(0, 5, (3, 7, 9))
    wind[1, 2, 3] = np.nan
    data = xarray.Dataset({"wind": (("height", "station", "day"), wind)},
                          {"day": days, "height": [10.0, 50.0, 100.0], "station": np.arange(7)})
    data.to_netcdf("station.nc", engine="netcdf4",
                   encoding={"wind": {"dtype": "i2", "scale_factor": 0.01, "add_offset": 1.5, "_FillValue": -9999}})
    for number, kind in enumerate(("NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA")):
        with netCDF4.Dataset(f"classic{number + 1}.nc", "w", format=kind) as d:
            d.createDimension("time", None)
            d.createDimension("x", 5)
            d.createVariable("v", "f4", ("time", "x"))[:] = np.arange(20).reshape(4, 5)


def check(condition, text):
    if not condition:
        print(text)
        sys.exit(1)


def months():
    """x and y as netCDF4 gives them: levels of t and the map of sst are channels."""
    x, y = [], []
    for path, _, _ in MONTHS:
        with netCDF4.Dataset(path) as d:
            t, sst = d["t"][:], d["sst"][:]
            check(t.mask.any() and sst.mask.any() and not t.mask.all(), f"{path}: nothing is masked")
            x.append(np.concatenate([t.filled(-99).astype("f4"), sst.filled(-99).astype("f4")[:, None]], 1))
            y.append(np.asarray(d["rain"][:]))
    return np.concatenate(x), np.concatenate(y)


def read_folder(folder, name):
    with netCDF4.Dataset(f"{folder}/convoy-00000-of-00001.h5") as d:
        d.set_auto_maskandscale(False)
        return np.asarray(d[name][:])


def converted(folder):
    x, y = months()
    got = read_folder(folder, "x")
    check(got.shape == x.shape == (60, LEVEL + 1, LAT, LON), f"x has the shape {got.shape}, expected {x.shape}")
    check(np.array_equal(got, x), f"x differs in {(got != x).sum()} numbers, by at most {abs(got - x).max()}")
    check(np.array_equal(read_folder(folder, "y"), y), "y differs")
    with xarray.open_dataset("station.nc") as d:
        wind = d["wind"].transpose("day", "height", "station").fillna(-1).values.astype("f4")
    got = read_folder("station", "x")
    got = got[:, 0] if got.ndim == 4 else got
    check(got.shape == wind.shape, f"wind has the shape {got.shape}, expected {wind.shape}")
    # xarray multiplies in another precision than netCDF4, whose numbers convoy has.
    check(np.allclose(got, wind, rtol=1e-6, atol=1e-6), f"wind differs by {abs(got - wind).max()}")


def predicted(path):
    with xarray.open_dataset(path) as got, xarray.open_mfdataset([m[0] for m in MONTHS]) as months_:
        check(got["rain"].dims == ("time", "lat", "lon"), f"the axes of rain are {got['rain'].dims}")
        check((got["time"].values == months_["time"].values).all(), "the times differ")
        for axis in ("lat", "lon"):
            check((got[axis].values == months_[axis].values).all(), f"{axis} differs")
            check(got[axis].attrs == months_[axis].attrs, f"{axis} has {got[axis].attrs}")
        check(got["time"].attrs["axis"] == "T" and got["time"].encoding["calendar"] == "gregorian" and
              got["time"].encoding["units"] == MONTHS[0][1], f"time has {got['time'].attrs} {got['time'].encoding}")
        for name in ("units", "standard_name", "long_name"):
            check(got["rain"].attrs.get(name) == months_["rain"].attrs[name], f"rain has {got['rain'].attrs}")
        check(np.isfinite(got["rain"].values).all(), "predictions are not finite")
        print(f"{len(got['time'])} predictions from {got['time'].values[0]} to {got['time'].values[-1]}")


if sys.argv[1] == "make":
    make()
else:
    {"converted": converted, "predicted": predicted}[sys.argv[1]](sys.argv[2])
