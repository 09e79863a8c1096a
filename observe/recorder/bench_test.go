// SPDX-License-Identifier: Apache-2.0

package recorder_test

import (
	"errors"
	"fmt"
	"testing"

	"trueup.dev/observe"
	"trueup.dev/observe/recorder"
)

// BenchmarkRun plays runs of 10,000 objects: without a recorder, and with one.
func BenchmarkRun(b *testing.B) {
	names := make([]string, 10_000)
	for i := range names {
		names[i] = fmt.Sprint("object-", i)
	}
	failure := errors.New("quota exceeded")
	runs := map[string]func(*play, string){
		"NoOp": (*play).noOp, "Write": (*play).write, "Failure": func(p *play, name string) { p.fail(name, failure) },
	}
	for _, kind := range []string{"NoOp", "Write", "Failure"} {
		for _, with := range []string{"Without", "Recorder"} {
			b.Run(kind+"/"+with, func(b *testing.B) {
				p := &play{to: observe.Nop}
				if with == "Recorder" {
					p.to = recorder.New(recorder.Options{})
				}
				for _, name := range names {
					runs[kind](p, name)
				}
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					runs[kind](p, names[i%len(names)])
				}
			})
		}
	}
}

// BenchmarkObjects returns one page of 10,000 objects.
func BenchmarkObjects(b *testing.B) {
	r := recorder.New(recorder.Options{})
	p := &play{to: r}
	for i := range 10_000 {
		p.noOp(fmt.Sprint("object-", i))
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, total := r.Objects(recorder.Query{Limit: 100}); total != 10_000 {
			b.Fatalf("got %d objects", total)
		}
	}
}
