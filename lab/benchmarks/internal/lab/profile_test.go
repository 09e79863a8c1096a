// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"runtime"
	"testing"
	"time"
)

var kept [][]byte

//go:noinline
func allocateInProfile() error {
	for range 1000 {
		kept = append(kept, make([]byte, 1024))
	}
	kept = nil
	return nil
}

func TestProfile_ContainsTheCalls(t *testing.T) {
	rate := runtime.MemProfileRate
	defer func() { runtime.MemProfileRate = rate }()
	cpu, allocs := bytes.Buffer{}, bytes.Buffer{}
	profile := Profile{CPU: &cpu, Allocs: &allocs, duration: 200 * time.Millisecond}
	profile.Prepare()
	if runtime.MemProfileRate != 0 {
		t.Errorf("before the profile, allocations are sampled at rate %d", runtime.MemProfileRate)
	}
	if err := profile.record(allocateInProfile); err != nil {
		t.Fatal(err)
	}
	for name, profile := range map[string]*bytes.Buffer{"CPU": &cpu, "allocations": &allocs} {
		plain, err := gzip.NewReader(profile)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		content, err := io.ReadAll(plain)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !bytes.Contains(content, []byte("allocateInProfile")) {
			t.Errorf("the profile of %s does not contain the function", name)
		}
	}
}

func TestProfile_Errors(t *testing.T) {
	rate := runtime.MemProfileRate
	defer func() { runtime.MemProfileRate = rate }()
	failed := errors.New("failed")
	for name, profile := range map[string]Profile{
		"CPU": {CPU: io.Discard, duration: time.Minute}, "allocations": {Allocs: io.Discard, duration: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			if err := profile.record(func() error { return failed }); !errors.Is(err, failed) {
				t.Errorf("error %v, want %v", err, failed)
			}
		})
	}
	calls := 0
	if err := (Profile{duration: time.Minute}).record(func() error { calls++; return nil }); err != nil || calls > 0 {
		t.Errorf("without writers: error %v, %d calls", err, calls)
	}
}
