// SPDX-License-Identifier: Apache-2.0

package nilcheck

import "testing"

type wrapper struct{ inner any }

func (w wrapper) Wrapped() any { return w.inner }

func TestIsNil(t *testing.T) {
	for name, tc := range map[string]struct {
		v    any
		want bool
	}{
		"nil":              {nil, true},
		"nil pointer":      {(*int)(nil), true},
		"nil function":     {(func())(nil), true},
		"nil map":          {map[string]int(nil), true},
		"pointer":          {new(int), false},
		"value":            {0, false},
		"function":         {func() {}, false},
		"wrapped nil":      {wrapper{}, true},
		"wrapped twice":    {wrapper{wrapper{(*int)(nil)}}, true},
		"nil wrapper":      {(*wrapper)(nil), true},
		"wrapped non-nil":  {wrapper{1}, false},
		"pointer to inner": {&wrapper{(*int)(nil)}, true},
	} {
		if got := IsNil(tc.v); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

func TestIsNilPointer(t *testing.T) {
	for name, tc := range map[string]struct {
		v    any
		want bool
	}{
		"nil":           {nil, true},
		"nil pointer":   {(*int)(nil), true},
		"nil map":       {map[string]int(nil), false},
		"pointer":       {new(int), false},
		"value":         {0, false},
		"wrapped nil":   {wrapper{}, false},
		"nil interface": {error(nil), true},
	} {
		if got := IsNilPointer(tc.v); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}
