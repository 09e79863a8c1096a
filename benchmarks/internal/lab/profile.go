// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"io"
	"runtime"
	"runtime/pprof"
	"time"
)

// Profile is where profiles of no-op reconciles, one at a time, are written. They are of the last contender at the
// largest size, and made after everything else was measured, since they cost time themselves.
type Profile struct {
	// CPU receives a CPU profile, Allocs one of allocations. Optional.
	CPU, Allocs io.Writer

	// duration is how long the reconciles of a profile take at least.
	duration time.Duration
}

// profileRate is how many bytes are allocated between two samples.
const profileRate = 4096

// record calls do for some time for each profile that is asked for.
func (p Profile) record(do func() error) error {
	if p.CPU != nil {
		if err := pprof.StartCPUProfile(p.CPU); err != nil {
			return err
		}
		err := p.repeat(do)
		pprof.StopCPUProfile()
		if err != nil {
			return err
		}
	}
	if p.Allocs == nil {
		return nil
	}
	// Samples are scaled with the rate of the moment when they are written, so nothing may have been sampled at another:
	// see Profile.Prepare.
	runtime.MemProfileRate = profileRate
	defer func() { runtime.MemProfileRate = 0 }()
	err := p.repeat(do)
	runtime.GC() // what was allocated is in the profile after a collection
	runtime.GC()
	return errors.Join(err, pprof.Lookup("allocs").WriteTo(p.Allocs, 0))
}

// Prepare keeps allocations out of the profile that are not to be in it. It has to be called first thing in a program.
func (p Profile) Prepare() {
	if p.Allocs != nil {
		runtime.MemProfileRate = 0
	}
}

func (p Profile) repeat(do func() error) error {
	for begin := time.Now(); time.Since(begin) < p.duration; {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}
