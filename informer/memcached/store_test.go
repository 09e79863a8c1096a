// SPDX-License-Identifier: Apache-2.0

package memcached_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
	"github.com/google/go-cmp/cmp"

	"trueup.dev/informer/memcached"
	"trueup.dev/internal/testkit/await"
)

// noise returns incompressible bytes.
func noise(n int) []byte {
	value, chance := make([]byte, n), rand.New(rand.NewPCG(1, 2))
	for i := range value {
		value[i] = byte(chance.Uint32())
	}
	return value
}

func TestStore_SetAndGet(t *testing.T) {
	s := newServer(t)
	store := s.store(nil)
	for name, tc := range map[string]struct {
		reason string
		key    string
		value  []byte
		kept   bool
	}{
		"plain": {
			reason: "the common case", key: "v1/ConfigMap/default/a", value: []byte(`{"a":1}`), kept: true,
		},
		"empty value": {reason: "an empty value differs from a missing one", key: "empty", value: []byte{}, kept: true},
		"longest key": {
			reason: "245 bytes and the prefix are 250", key: strings.Repeat("k", 245), value: []byte("1"), kept: true,
		},
		"longer key": {
			reason: "memcached would reject it", key: strings.Repeat("k", 246), value: []byte("2"), kept: true,
		},
		"much longer key": {
			reason: "group, kind, namespace and name have 253 bytes each", key: strings.Repeat("k", 1000), value: []byte("3"),
			kept: true,
		},
		"key with a space": {
			reason: "names of some kinds may have one", key: "v1/ClusterRole//my role\n", value: []byte("4"), kept: true,
		},
		"key in other script": {
			reason: "names of some kinds are not ASCII", key: "v1/ClusterRole//ролЬ", value: []byte("5"), kept: true,
		},
		"key like a hash": {
			reason: "it must not collide with a hashed key", key: "#" + strings.Repeat("0", 64), value: []byte("6"), kept: true,
		},
		"largest value": {reason: "it fits as it is", key: "largest", value: noise(1<<20 - 2048), kept: true},
		"larger value": {
			reason: "it is compressed", key: "larger", value: bytes.Repeat([]byte("value "), 1<<20), kept: true,
		},
		"too large a value": {
			reason: "it is not stored, without an error", key: "too large", value: noise(1 << 21), kept: false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := store.Set(t.Context(), tc.key, []byte("before")); err != nil {
				t.Fatal(err)
			}
			if err := store.Set(t.Context(), tc.key, tc.value); err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			values, err := store.Get(t.Context(), []string{"other", tc.key})
			if err != nil {
				t.Fatal(err)
			}
			value, kept := values[tc.key]
			if kept != tc.kept || kept && !bytes.Equal(value, tc.value) || len(values) > 1 {
				t.Errorf(
					"%s: kept %t, %d values, this one of %d bytes, want %d", tc.reason, kept, len(values), len(value), len(tc.value),
				)
			}
			for range 2 { // also if it does not exist
				if err := store.Delete(t.Context(), tc.key); err != nil {
					t.Fatal(err)
				}
			}
			if values, err := store.Get(t.Context(), []string{tc.key}); err != nil || len(values) > 0 {
				t.Errorf("still stored after its deletion: %v, %v", values, err)
			}
		})
	}
}

func TestStore_GetsManyAtOnce(t *testing.T) {
	store := newServer(t).store(nil)
	want, keys := map[string][]byte{}, []string{}
	for i := range 1000 {
		key := strings.Repeat("k", 200) + fmt.Sprint(i)
		keys = append(keys, key)
		if i%3 == 0 {
			continue
		}
		want[key] = []byte(fmt.Sprint("value ", i))
		if err := store.Set(t.Context(), key, want[key]); err != nil {
			t.Fatal(err)
		}
	}
	got, err := store.Get(t.Context(), keys)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStore_SpreadsOverServers(t *testing.T) {
	first, second := newServer(t), newServer(t)
	store := first.store(func(c *memcached.Config) { c.Addrs = append(c.Addrs, second.socket) })
	keys := []string{}
	for i := range 100 {
		keys = append(keys, fmt.Sprint("key", i))
		if err := store.Set(t.Context(), keys[i], []byte("value")); err != nil {
			t.Fatal(err)
		}
	}
	all, err := store.Get(t.Context(), keys)
	if err != nil || len(all) != 100 {
		t.Fatalf("%d values, %v", len(all), err)
	}
	second.stop()
	some, err := store.Get(t.Context(), keys)
	if err == nil || len(some) == 0 || len(some) == 100 {
		t.Errorf("without the second server: %d values, %v", len(some), err)
	}
}

func TestStore_ServerGoesAndComesBack(t *testing.T) {
	s := newServer(t)
	store := s.store(nil)
	if err := store.Set(t.Context(), "key", []byte("value")); err != nil {
		t.Fatal(err)
	}
	s.stop()
	_, getErr := store.Get(t.Context(), []string{"key"})
	for name, err := range map[string]error{
		"Get": getErr, "Set": store.Set(t.Context(), "key", nil), "Delete": store.Delete(t.Context(), "key"),
	} {
		if err == nil {
			t.Errorf("%s without a server: no error", name)
		}
	}
	s.start()
	await.Nil(t, 10*time.Second, func() error { return store.Set(t.Context(), "key", []byte("again")) })
	values, err := store.Get(t.Context(), []string{"key"})
	if diff := cmp.Diff(map[string][]byte{"key": []byte("again")}, values); diff != "" || err != nil {
		t.Errorf("error %v, (-want +got):\n%s", err, diff)
	}
}

// A host name that cannot be resolved causes only failures of operations, and each new connection resolves it again.
func TestStore_ResolvesHostNamesForEachConnection(t *testing.T) {
	first, second := newServer(t), newServer(t)
	var at atomic.Pointer[server]
	store := first.store(func(c *memcached.Config) {
		c.Addrs = []string{"cache.example.invalid:11211"}
		c.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			if network != "tcp" || address != "cache.example.invalid:11211" {
				return nil, fmt.Errorf("connecting to %s %s", network, address)
			}
			if s := at.Load(); s != nil {
				return (&net.Dialer{}).DialContext(ctx, "unix", s.socket)
			}
			return nil, &net.DNSError{Err: "no such host", Name: address, IsNotFound: true}
		}
	})
	if _, err := store.Get(t.Context(), []string{"key"}); err == nil {
		t.Error("Get while the name cannot be resolved: no error")
	}
	for i, now := range []*server{first, second} {
		at.Store(now)
		value := []byte(fmt.Sprint("in server ", i))
		await.Nil(t, 10*time.Second, func() error { return store.Set(t.Context(), "key", value) })
		got, err := store.Get(t.Context(), []string{"key"})
		if diff := cmp.Diff(map[string][]byte{"key": value}, got); diff != "" || err != nil {
			t.Errorf("error %v, (-want +got):\n%s", err, diff)
		}
		now.stop() // this closes idle connections
	}
}

func TestStore_HostName(t *testing.T) {
	s := newServer(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go s.forward(listener)
	store := s.store(func(c *memcached.Config) {
		c.Addrs = []string{fmt.Sprintf("localhost:%d", listener.Addr().(*net.TCPAddr).Port)}
		c.Timeout = 10 * time.Second
	})
	if err := store.Set(t.Context(), "key", []byte("value")); err != nil {
		t.Fatal(err)
	}
	if values, err := store.Get(t.Context(), []string{"key"}); err != nil || string(values["key"]) != "value" {
		t.Errorf("values %q, error %v", values, err)
	}
}

func TestStore_Expires(t *testing.T) {
	s := newServer(t)
	for name, tc := range map[string]struct {
		expiration time.Duration
		expired    bool
	}{
		"soon":          {expiration: time.Second, expired: true},
		"in an instant": {expiration: time.Millisecond, expired: true},
		"in a while":    {expiration: 29 * 24 * time.Hour},
		"in a year":     {expiration: 365 * 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			store := s.store(func(c *memcached.Config) { c.Expiration = tc.expiration })
			if err := store.Set(t.Context(), name, []byte("value")); err != nil {
				t.Fatal(err)
			}
			is := func() error {
				values, err := store.Get(t.Context(), []string{name})
				if expired := len(values) == 0; expired != tc.expired && err == nil {
					err = fmt.Errorf("expired is %t", expired)
				}
				return err
			}
			await.Nil(t, 10*time.Second, is)
		})
	}
}

func TestStore_ForeignValues(t *testing.T) {
	s := newServer(t)
	store := s.store(nil)
	stranger := memcache.New(s.socket)
	defer stranger.Close()
	if err := stranger.Set(&memcache.Item{Key: "test:key", Value: []byte("not compressed"), Flags: 1}); err != nil {
		t.Fatal(err)
	}
	if err := store.Set(t.Context(), "other", []byte("value")); err != nil {
		t.Fatal(err)
	}
	values, err := store.Get(t.Context(), []string{"key", "other"})
	if err == nil || len(values) != 1 {
		t.Errorf("a value that cannot be decompressed must be an error, without affecting others, got %v, %v", values, err)
	}
}

func TestStore_CanceledContext(t *testing.T) {
	store := newServer(t).store(nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := store.Get(ctx, []string{"key"})
	for name, err := range map[string]error{
		"Get": err, "Set": store.Set(ctx, "key", nil), "Delete": store.Delete(ctx, "key"),
	} {
		if err == nil {
			t.Errorf("%s with a context that has ended", name)
		}
	}
}

func TestConfig_Validate(t *testing.T) {
	servers := &memcache.ServerList{}
	for name, tc := range map[string]struct {
		config memcached.Config
		want   []string
	}{
		"addresses": {config: memcached.Config{Addrs: []string{"127.0.0.1:11211"}, KeyPrefix: "mine:"}},
		"selector":  {config: memcached.Config{ServerSelector: servers}},
		"nothing":   {want: []string{"Addrs or ServerSelector"}},
		"both": {
			config: memcached.Config{Addrs: []string{"/socket"}, ServerSelector: servers},
			want:   []string{"Addrs or ServerSelector"},
		},
		"long prefix": {
			config: memcached.Config{ServerSelector: servers, KeyPrefix: strings.Repeat("k", 101)}, want: []string{"KeyPrefix"},
		},
		"everything": {
			config: memcached.Config{KeyPrefix: "a b", Timeout: -1, MaxIdleConns: -1, Expiration: -1, MaxItemSize: 100},
			want:   []string{"Addrs or ServerSelector", "KeyPrefix", "Timeout", "MaxIdleConns", "Expiration", "MaxItemSize"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := memcached.NewStore(tc.config)
			if (err != nil) != (len(tc.want) > 0) {
				t.Fatal(err)
			}
			for _, field := range tc.want {
				if !strings.Contains(err.Error(), field) {
					t.Errorf("%q does not name %s", err, field)
				}
			}
		})
	}
	_, err := memcached.NewStore(memcached.Config{Addrs: []string{"cache:11211", "no port", "cache:no-service", ""}})
	for _, want := range []string{`Addrs[1], got "no port"`, `Addrs[2], got "cache:no-service"`, `Addrs[3], got ""`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error = %v, want %s", err, want)
		}
	}
}
