// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"io"
	"runtime"
	"runtime/pprof"
	"time"
)

// Profile receives profiles of no-op reconciles, one at a time. They are of the last contender at the largest size, and
// recorded after all measurements, because profiling has a cost.
type Profile struct {
	// CPU receives a CPU profile, Allocs one of allocations. Optional.
	CPU, Allocs io.Writer

	// duration is the minimum duration of the reconciles in a profile.
	duration time.Duration
}

// profileRate is the number of allocated bytes between two samples.
const profileRate = 4096

// record calls do repeatedly for each requested profile.
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
	// Samples are scaled with the rate at the time of writing, so none may have been taken at another rate: see
	// Profile.Prepare.
	runtime.MemProfileRate = profileRate
	defer func() { runtime.MemProfileRate = 0 }()
	err := p.repeat(do)
	runtime.GC() // allocations are in the profile after a collection
	runtime.GC()
	return errors.Join(err, pprof.Lookup("allocs").WriteTo(p.Allocs, 0))
}

// Prepare keeps unrelated allocations out of the profile. It must be called before anything else in a program.
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
