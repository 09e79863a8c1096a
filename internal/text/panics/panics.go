// SPDX-License-Identifier: Apache-2.0

// Package panics describes panics that have been recovered.
package panics

import (
	"fmt"
	"path"
	"runtime"
	"strings"
)

// Text describes the panic that the caller, a deferred function, recovers: its value, and where in the code it
// occurred.
func Text(value any) string {
	callers := make([]uintptr, 32)
	frames := runtime.CallersFrames(callers[:runtime.Callers(0, callers)])
	for panicked, more := false, true; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		isRuntime := strings.HasPrefix(frame.Function, "runtime.")
		if panicked && !isRuntime {
			return fmt.Sprintf("%v (in %s, %s:%d)", value, path.Base(frame.Function), path.Base(frame.File), frame.Line)
		}
		panicked = panicked || frame.Function == "runtime.gopanic"
	}
	return fmt.Sprint(value)
}
