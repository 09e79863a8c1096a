// SPDX-License-Identifier: Apache-2.0

package recorder_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"trueup.dev/internal/testkit/heap"
	"trueup.dev/observe/recorder"
)

// TestMemoryOfManyObjects plays runs of 100,000 objects with the default limit. The recorder estimates its memory, so
// the test also measures the heap.
func TestMemoryOfManyObjects(t *testing.T) {
	if testing.Short() {
		t.Skip("plays 300,000 runs")
	}
	const objects, limit = 100_000, 16 << 20
	before := heap.InUse()
	r := recorder.New(recorder.Options{})
	p := &play{to: r}
	failure := errors.New("quota exceeded")
	for range 2 {
		for i := range objects {
			name := fmt.Sprintf("object-%d", i)
			p.noOp(name)
			switch {
			case i%100 == 0:
				p.fail(name, failure)
			case i%5 == 0:
				p.write(name)
			}
		}
		_, total := r.Objects(recorder.Query{Limit: 1})
		estimated, grown := r.Bytes(), heap.InUse()-before
		t.Logf("%d objects are kept in %d KB, the heap has grown by %d KB", total, estimated>>10, grown>>10)
		if estimated > limit {
			t.Errorf("the recorder has %d bytes, the limit is %d", estimated, limit)
		}
		if grown > limit*5/4 {
			t.Errorf("the heap has grown by %d bytes, the limit is %d", grown, limit)
		}
		if total < objects/10 {
			t.Errorf("only %d of %d objects are kept", total, objects)
		}
	}
	runtime.KeepAlive(r)
}
