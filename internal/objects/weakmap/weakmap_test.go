// SPDX-License-Identifier: Apache-2.0

package weakmap

import (
	"runtime"
	"testing"
)

type object struct{ name string }

func TestDoesEachObjectHaveItsValue(t *testing.T) {
	values := &Map[object, int]{}
	a, b := &object{"a"}, &object{"b"}
	*values.Of(a), *values.Of(b) = 1, 2
	if *values.Of(a) != 1 || *values.Of(b) != 2 {
		t.Errorf("got %d and %d, want 1 and 2", *values.Of(a), *values.Of(b))
	}
	runtime.KeepAlive(a)
	runtime.KeepAlive(b)
}

func TestIsAValueRemovedWithItsObject(t *testing.T) {
	values := &Map[object, int]{}
	*values.Of(&object{"gone"}) = 1
	left := 1
	for range 100 {
		runtime.GC()
		left = 0
		values.values.Range(func(any, any) bool { left++; return true })
		if left == 0 {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d values are left after their objects", left)
}
