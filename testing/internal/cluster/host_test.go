// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"testing"

	"k8s.io/client-go/rest"
)

// Two processes have two hosts for one address. Packages are tested at the same time, with namespaces of one name.
func TestProcessesTakeTurns(t *testing.T) {
	process := func(address string) map[string]*Cluster {
		c := New(&rest.Config{Host: address})
		if err := c.connect(); err != nil {
			t.Fatal(err)
		}
		c.host = &host{address: c.host.address}
		return map[string]*Cluster{DefaultName: c}
	}
	first, err := TakeTurn(t.Context(), process("https://a.example.com"))
	if err != nil {
		t.Fatal(err)
	}
	second := process("https://a.example.com")
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := TakeTurn(ended, second); !errors.Is(err, context.Canceled) {
		t.Errorf("while another process has the turn: error %v", err)
	}
	other, err := TakeTurn(ended, process("https://b.example.com"))
	if err != nil {
		t.Fatalf("on another cluster: %v", err)
	}
	other.End()
	first.End()
	turn, err := TakeTurn(t.Context(), second)
	if err != nil {
		t.Fatalf("after the turn of the other process has ended: %v", err)
	}
	turn.End()
}
