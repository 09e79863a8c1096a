// SPDX-License-Identifier: Apache-2.0

package dns_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trueup.dev/examples/website/dns"
)

func TestDirectory(t *testing.T) {
	shop := dns.Record{Name: "shop.example.com", Target: "10.0.0.1", Owner: "default/shop"}
	blog := dns.Record{Name: "blog.example.com", Target: "10.0.0.2", Owner: "default/blog"}

	tests := map[string]struct {
		given   []dns.Record
		do      func(ctx context.Context, d *dns.Directory) error
		wantErr string
		wantIs  error
		want    []dns.Record
	}{
		"publish": {
			do:   func(ctx context.Context, d *dns.Directory) error { return d.Publish(ctx, shop) },
			want: []dns.Record{shop},
		},
		"publish again": {
			given: []dns.Record{shop},
			do:    func(ctx context.Context, d *dns.Directory) error { return d.Publish(ctx, shop) },
			want:  []dns.Record{shop},
		},
		"publish a new target": {
			given: []dns.Record{shop, blog},
			do: func(ctx context.Context, d *dns.Directory) error {
				return d.Publish(ctx, dns.Record{Name: shop.Name, Target: "10.0.0.9", Owner: shop.Owner})
			},
			want: []dns.Record{blog, {Name: shop.Name, Target: "10.0.0.9", Owner: shop.Owner}},
		},
		"publish a new name withdraws the old one": {
			given: []dns.Record{shop, blog},
			do: func(ctx context.Context, d *dns.Directory) error {
				return d.Publish(ctx, dns.Record{Name: "store.example.com", Target: "10.0.0.1", Owner: shop.Owner})
			},
			want: []dns.Record{blog, {Name: "store.example.com", Target: "10.0.0.1", Owner: shop.Owner}},
		},
		"a taken name changes nothing, not even the owner's record": {
			given: []dns.Record{shop, blog},
			do: func(ctx context.Context, d *dns.Directory) error {
				return d.Publish(ctx, dns.Record{Name: blog.Name, Target: "10.0.0.1", Owner: shop.Owner})
			},
			wantErr: "publish blog.example.com: name is taken by default/blog",
			wantIs:  dns.ErrTaken,
			want:    []dns.Record{blog, shop},
		},
		"withdraw": {
			given: []dns.Record{shop, blog},
			do:    func(ctx context.Context, d *dns.Directory) error { return d.Withdraw(ctx, shop.Owner) },
			want:  []dns.Record{blog},
		},
		"withdraw nothing": {
			do: func(ctx context.Context, d *dns.Directory) error { return d.Withdraw(ctx, shop.Owner) },
		},
		"look up nothing": {
			do: func(ctx context.Context, d *dns.Directory) error {
				_, err := d.Lookup(ctx, shop.Name)
				return err
			},
			wantErr: "look up shop.example.com: no such record",
			wantIs:  dns.ErrNotFound,
		},
		"a name outside of the directory": {
			do: func(ctx context.Context, d *dns.Directory) error {
				return d.Publish(ctx, dns.Record{Name: "../escape", Target: "10.0.0.1", Owner: "default/evil"})
			},
			wantErr: `"../escape" is not a domain name`,
		},
		"all missing fields are named": {
			do:      func(ctx context.Context, d *dns.Directory) error { return d.Publish(ctx, dns.Record{Name: "a.b"}) },
			wantErr: "a record needs a Target\na record needs an Owner",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "records")
			d := dns.NewDirectory(path)
			for _, record := range tc.given {
				if err := d.Publish(t.Context(), record); err != nil {
					t.Fatal(err)
				}
			}
			err := tc.do(t.Context(), d)
			if tc.wantErr == "" && err != nil {
				t.Fatalf("unexpected error: %v", err)
			}
			if tc.wantErr != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.wantErr)) {
				t.Errorf("error = %v, want %q", err, tc.wantErr)
			}
			if tc.wantIs != nil && !errors.Is(err, tc.wantIs) {
				t.Errorf("error %v does not wrap %v", err, tc.wantIs)
			}
			if diff := cmp.Diff(tc.want, records(t, d, path)); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
		})
	}
}

// Many owners claim one name at the same time, each with its own Directory, as separate processes would.
func TestDirectory_oneWinner(t *testing.T) {
	const owners = 32
	path := t.TempDir()
	won := make([]bool, owners)
	var wg sync.WaitGroup
	for i := range owners {
		wg.Go(func() {
			err := dns.NewDirectory(path).Publish(t.Context(), dns.Record{
				Name: "www.example.com", Target: "10.0.0.1", Owner: fmt.Sprintf("default/site-%d", i),
			})
			if err != nil && !errors.Is(err, dns.ErrTaken) {
				t.Errorf("owner %d: %v", i, err)
			}
			won[i] = err == nil
		})
	}
	wg.Wait()

	got := records(t, dns.NewDirectory(path), path)
	if len(got) != 1 {
		t.Fatalf("records = %v, want one", got)
	}
	for i := range owners {
		if want := got[0].Owner == fmt.Sprintf("default/site-%d", i); won[i] != want {
			t.Errorf("owner %d: won = %t, but the record belongs to %s", i, won[i], got[0].Owner)
		}
	}
}

func TestDirectory_damagedFile(t *testing.T) {
	path := t.TempDir()
	if err := os.WriteFile(filepath.Join(path, "shop.example.com.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := dns.NewDirectory(path).Lookup(t.Context(), "shop.example.com")
	if err == nil || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("error = %v, want one that names the damaged file", err)
	}
}

// records returns all records that Lookup finds, sorted by name. It fails the test if a draft remains.
func records(t *testing.T, d *dns.Directory, path string) []dns.Record {
	t.Helper()
	entries, err := os.ReadDir(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var all []dns.Record
	for _, entry := range entries {
		name, ok := strings.CutSuffix(entry.Name(), ".json")
		if !ok {
			t.Errorf("left behind: %s", entry.Name())
			continue
		}
		record, err := d.Lookup(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, record)
	}
	return all
}

func ExampleDirectory() {
	ctx := context.Background()
	path, err := os.MkdirTemp("", "records-*")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(path)

	records := dns.NewDirectory(path)
	if err := records.Publish(ctx, dns.Record{
		Name: "www.example.com", Target: "10.0.0.7", Owner: "default/shop",
	}); err != nil {
		panic(err)
	}
	record, err := records.Lookup(ctx, "www.example.com")
	fmt.Println(record.Target, err)

	err = records.Publish(ctx, dns.Record{Name: "www.example.com", Target: "10.0.0.8", Owner: "default/rival"})
	fmt.Println(errors.Is(err, dns.ErrTaken))
	// Output:
	// 10.0.0.7 <nil>
	// true
}
