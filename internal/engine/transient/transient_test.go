// SPDX-License-Identifier: Apache-2.0

package transient

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMap_IsAMap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a repeatable test
	var m Map[int, int]
	want := map[int]int{}
	for step := range 200_000 {
		// It grows for a while, then shrinks.
		key, grow := random.IntN(3000), step/20_000%2 == 0
		switch chance := random.IntN(100); {
		case chance == 0:
			odd := func(k, _ int) bool { return k%50 == key%50 }
			m.DeleteFunc(odd)
			for k := range want {
				if odd(k, 0) {
					delete(want, k)
				}
			}
		case chance < 80 == grow:
			m.Put(key, step)
			want[key] = step
		default:
			m.Delete(key)
			delete(want, key)
		}
		if m.Len() != len(want) || m.Get(key) != want[key] {
			t.Fatalf("step %d: got %d entries and %d, want %d and %d", step, m.Len(), m.Get(key), len(want), want[key])
		}
	}
	if diff := cmp.Diff(want, m.entries); diff != "" {
		t.Errorf("unexpected entries (-want +got):\n%s", diff)
	}
}

func TestMap_ReturnsMemory(t *testing.T) {
	used := func() uint64 {
		runtime.GC()
		stats := runtime.MemStats{}
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	const entries = 200_000
	var m Map[[4]string, *int]
	before := used()
	for i := range entries {
		m.Put([4]string{string(rune(i))}, nil)
	}
	full := used()
	for i := range entries {
		m.Delete([4]string{string(rune(i))})
	}
	if after := used(); after > before+(full-before)/10 {
		t.Errorf("the empty map has %d of %d bytes", after-before, full-before)
	}
	runtime.KeepAlive(&m)
}
