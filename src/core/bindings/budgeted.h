// What the budgeted methods share at the border: options as Python gives them.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "bindings/targets.h"
#include "budgeted/bac.h"

namespace sapwood::bindings {

// A dict of the options of a budget-aware classifier: budget, C, loss, fit_offset, balanced, tol, max_planes, max_steps.
inline BacOptions bac_options(const nb::dict& named) {
  const auto get = [&]<class T>(const char* name, T& out) {
    if (!named.contains(name)) throw nb::value_error((std::string("the option ") + name + " is missing").c_str());
    if (!nb::try_cast(named[name], out)) throw nb::value_error((std::string("the option ") + name + " is of another kind").c_str());
  };
  BacOptions options;
  std::string loss;
  get("budget", options.budget);
  get("C", options.C);
  get("loss", loss);
  get("fit_offset", options.fit_offset);
  get("balanced", options.balanced);
  get("tol", options.tolerance);
  get("max_planes", options.max_planes);
  get("max_steps", options.max_steps);
  options.loss = loss_named(loss);
  if (options.budget < 1 || options.max_planes < 1 || options.max_steps < 1 || !(options.C > 0) || !(options.tolerance > 0)) {
    throw nb::value_error("budget, max_planes and max_steps must be at least 1, C and tol positive");
  }
  return options;
}

}  // namespace sapwood::bindings
