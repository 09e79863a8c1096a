// SPDX-License-Identifier: Apache-2.0

package memcached

import (
	"bytes"
	"compress/flate"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"trueup.dev/informer"
)

const (
	// longestKey is the longest key in bytes that memcached accepts.
	longestKey = 250
	// longestPrefix leaves room for names.
	longestPrefix = 100
	// longestRelative is the longest relative expiration; memcached interprets a larger value as a Unix time.
	longestRelative = 30 * 24 * time.Hour
	// overhead is the room for the data that memcached stores with a value.
	overhead = 1024

	// longestValue limits the size of a decompressed value, in case another client wrote it. No object is that large.
	longestValue = 64 << 20

	// isDeflated marks compressed values.
	isDeflated = 1
)

// Config configures the servers and the entries of a Store.
type Config struct {
	// Addrs are the servers, as `host:port` or as the path of a Unix socket. Keys are spread over them; the same list
	// leads to the same server for a key. Host names are resolved for every new connection, so a server may move, or
	// may not exist yet. Either Addrs or ServerSelector is required.
	Addrs []string
	// ServerSelector picks the server for a key, instead of Addrs.
	ServerSelector memcache.ServerSelector
	// Timeout limits one operation of a server, and the connection to it. Default: 500 milliseconds.
	Timeout time.Duration
	// MaxIdleConns is the maximum number of idle connections to each server. Default: 2.
	MaxIdleConns int
	// KeyPrefix separates entries from entries of other users of the servers. At most 100 characters, without spaces.
	// Default: none.
	KeyPrefix string
	// Expiration is the time without a change after which memcached deletes an entry. It is not needed to free memory.
	// It removes objects that were deleted while memcached was unreachable. Default: never.
	Expiration time.Duration
	// MaxItemSize is the largest size in bytes of a value that memcached accepts, see its option -I. Larger values are
	// compressed. If a compressed value is still too large, it is not stored, and the object is read from the API
	// server each time. Default: 1 MiB.
	MaxItemSize int
	// DialContext connects to a server, for example with TLS. Default: without encryption.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
}

// Validate returns every problem of the config.
func (c Config) Validate() error {
	problems := []error{}
	if (len(c.Addrs) == 0) == (c.ServerSelector == nil) {
		problems = append(problems, errors.New("memcached store must have either Addrs or ServerSelector"))
	}
	for i, addr := range c.Addrs {
		if err := checkAddress(addr); err != nil {
			problems = append(
				problems,
				fmt.Errorf(
					"memcached store must have `host:port` or the path of a Unix socket in Addrs[%d], got %q: %w", i, addr, err,
				),
			)
		}
	}
	if len(c.KeyPrefix) > longestPrefix || !isPlain(c.KeyPrefix) {
		problems = append(
			problems,
			fmt.Errorf(
				"memcached store must have a KeyPrefix of at most %d characters without spaces, got %q", longestPrefix, c.KeyPrefix,
			),
		)
	}
	for field, negative := range map[string]bool{
		"Timeout": c.Timeout < 0, "MaxIdleConns": c.MaxIdleConns < 0, "Expiration": c.Expiration < 0,
		"MaxItemSize": c.MaxItemSize != 0 && c.MaxItemSize <= overhead,
	} {
		if negative {
			problems = append(problems, fmt.Errorf("memcached store must have a larger %s", field))
		}
	}
	return errors.Join(problems...)
}

// Store is an [informer.Store] in memcached. It is safe for concurrent use.
type Store struct {
	client  *memcache.Client
	prefix  string
	expires time.Duration
	maxSize int
}

var _ informer.Store = (*Store)(nil)

// NewStore returns a store. It does not connect to a server or resolve a host name until the first key is read or
// written.
func NewStore(config Config) (*Store, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	selector := config.ServerSelector
	if selector == nil {
		selector = newServers(config.Addrs)
	}
	client := memcache.NewFromSelector(selector)
	client.Timeout, client.MaxIdleConns, client.DialContext = config.Timeout, config.MaxIdleConns, config.DialContext
	s := &Store{client: client, prefix: config.KeyPrefix, expires: config.Expiration, maxSize: config.MaxItemSize}
	if s.maxSize == 0 {
		s.maxSize = 1 << 20
	}
	s.maxSize -= overhead
	return s, nil
}

// Get implements [informer.Store]. It checks the context before it calls the servers, but not during the calls, which
// Timeout limits.
func (s *Store) Get(ctx context.Context, keys []string) (map[string][]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	short := make([]string, len(keys))
	for i, key := range keys {
		short[i] = s.keyOf(key)
	}
	items, err := s.client.GetMulti(short)
	values := make(map[string][]byte, len(items))
	for i, key := range keys {
		item, ok := items[short[i]]
		if !ok {
			continue
		}
		value, damaged := valueOf(item)
		if damaged != nil {
			err = errors.Join(err, fmt.Errorf("value of %s: %w", key, damaged))
			continue
		}
		values[key] = value
	}
	if err != nil {
		return values, fmt.Errorf("get from memcached: %w", err)
	}
	return values, nil
}

// Set implements [informer.Store].
func (s *Store) Set(ctx context.Context, key string, value []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	item := &memcache.Item{Key: s.keyOf(key), Value: value, Expiration: s.expiration(time.Now())}
	if s.isTooLarge(item) {
		item.Value, item.Flags = deflated(value), isDeflated
	}
	if s.isTooLarge(item) {
		return s.Delete(ctx, key)
	}
	if err := s.client.Set(item); err != nil {
		return fmt.Errorf("set in memcached: %w", err)
	}
	return nil
}

// Delete implements [informer.Store].
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.client.Delete(s.keyOf(key)); err != nil && !errors.Is(err, memcache.ErrCacheMiss) {
		return fmt.Errorf("delete from memcached: %w", err)
	}
	return nil
}

// Close closes idle connections.
func (s *Store) Close() error {
	return s.client.Close()
}

// keyOf returns the key itself if memcached accepts it, and a hash of it otherwise.
func (s *Store) keyOf(key string) string {
	if len(s.prefix)+len(key) <= longestKey && isPlain(key) && !strings.HasPrefix(key, "#") {
		return s.prefix + key
	}
	sum := sha256.Sum256([]byte(key))
	return s.prefix + "#" + hex.EncodeToString(sum[:])
}

// isPlain reports whether memcached accepts s as part of a key.
func isPlain(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

func (s *Store) isTooLarge(item *memcache.Item) bool {
	return len(item.Key)+len(item.Value) > s.maxSize
}

func (s *Store) expiration(now time.Time) int32 {
	switch {
	case s.expires > longestRelative:
		return int32(now.Add(s.expires).Unix())
	case s.expires > 0:
		return int32(max(s.expires/time.Second, 1))
	}
	return 0
}

func deflated(value []byte) []byte {
	compressed := &bytes.Buffer{}
	writer, _ := flate.NewWriter(compressed, flate.BestSpeed) // fails only for an invalid level
	_, _ = writer.Write(value)                                // writing to a buffer never fails
	_ = writer.Close()
	return compressed.Bytes()
}

func valueOf(item *memcache.Item) ([]byte, error) {
	if item.Flags&isDeflated == 0 {
		return item.Value, nil
	}
	return io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(item.Value)), longestValue))
}
