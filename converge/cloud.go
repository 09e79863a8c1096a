// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
)

// ErrExists and ErrAbsent are returned by the calls of a [Cloud].
var (
	ErrExists = errors.New("exists already")
	ErrAbsent = errors.New("does not exist")
)

// Cloud is a system outside of the cluster, for example one that has buckets. It stores values by keys. Each call can
// fail, with or without an effect, as calls of [Env.Call] do.
//
// Many real systems are eventually consistent, create things asynchronously, and return the first response again to a
// request with the same token. For these, see [Cloud.VisibleAfter], [Cloud.ReadyAfter] and [Cloud.CreateOnce].
type Cloud struct {
	process *process
	visible time.Duration
	ready   time.Duration
}

// cloudState is the state of the external system.
type cloudState struct {
	values map[string]string
	// created has the creation time of each key.
	created map[string]time.Time
	// version counts changes.
	version int
	// named counts the generated keys by prefix.
	named map[string]int
	// tokens has the keys of the values that were created with a token.
	tokens map[string]string
}

// VisibleAfter returns the same system with reads that are eventually consistent: Get and List do not show a value
// before the given time has passed since its creation.
func (c Cloud) VisibleAfter(d time.Duration) Cloud {
	c.visible = d
	return c
}

// ReadyAfter returns the same system with creations that take time: [Cloud.Ready] returns false before the given time
// has passed since a creation.
func (c Cloud) ReadyAfter(d time.Duration) Cloud {
	c.ready = d
	return c
}

// shows reports whether a read shows a value.
func (c Cloud) shows(s *cloudState, key string) bool {
	_, ok := s.values[key]
	return ok && time.Since(s.created[key]) >= c.visible
}

func (s *cloudState) set(key, value string) {
	if old, ok := s.values[key]; ok && old == value {
		return
	}
	if s.values == nil {
		s.values, s.created = map[string]string{}, map[string]time.Time{}
	}
	if _, ok := s.values[key]; !ok {
		s.created[key] = time.Now()
	}
	s.values[key] = value
	s.version++
}

// deleteAll deletes the values whose keys have a prefix.
func (s *cloudState) deleteAll(prefix string) {
	for key := range s.values {
		if strings.HasPrefix(key, prefix) {
			delete(s.values, key)
			s.version++
		}
	}
}

// Create creates a value. It returns [ErrExists] if the key exists.
func (c Cloud) Create(ctx context.Context, key, value string) error {
	return c.call(ctx, "create", key, func(s *cloudState) error {
		if _, ok := s.values[key]; ok {
			return fmt.Errorf("%s: %w", key, ErrExists)
		}
		s.set(key, value)
		return nil
	})
}

// CreateNamed creates a value and returns its key, which the system generates from a prefix. Two calls create two
// values.
func (c Cloud) CreateNamed(ctx context.Context, prefix, value string) (key string, err error) {
	return c.CreateOnce(ctx, "", prefix, value)
}

// CreateOnce is like CreateNamed, but idempotent for a token: a call with the token of an earlier call creates nothing
// and returns the key of the earlier value, even if that was deleted since. An empty token is none.
func (c Cloud) CreateOnce(ctx context.Context, token, prefix, value string) (key string, err error) {
	world := &c.process.run.world
	err = c.call(ctx, "create", prefix, func(s *cloudState) error {
		var used bool
		if key, used = s.tokens[token]; used {
			return nil
		}
		if s.named == nil {
			s.named = map[string]int{}
		}
		s.named[prefix]++
		key = fmt.Sprintf("%s%d", prefix, s.named[prefix])
		world.generated.Learn(key, prefix)
		s.set(key, value)
		if token != "" {
			if s.tokens == nil {
				s.tokens = map[string]string{}
			}
			s.tokens[token] = key
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return key, nil
}

// Get returns a value. It returns [ErrAbsent] if the key does not exist.
func (c Cloud) Get(ctx context.Context, key string) (value string, err error) {
	err = c.read(ctx, "get", key, func(s *cloudState) error {
		if !c.shows(s, key) {
			return fmt.Errorf("%s: %w", key, ErrAbsent)
		}
		value = s.values[key]
		return nil
	})
	return value, err
}

// Ready reports whether the creation of a value is complete. It returns [ErrAbsent] as Get does. See
// [Cloud.ReadyAfter].
func (c Cloud) Ready(ctx context.Context, key string) (ready bool, err error) {
	err = c.read(ctx, "ready", key, func(s *cloudState) error {
		if !c.shows(s, key) {
			return fmt.Errorf("%s: %w", key, ErrAbsent)
		}
		ready = time.Since(s.created[key]) >= c.ready
		return nil
	})
	return ready, err
}

// List returns the keys with a prefix, sorted.
func (c Cloud) List(ctx context.Context, prefix string) (keys []string, err error) {
	err = c.read(ctx, "list", prefix, func(s *cloudState) error {
		for _, key := range phrase.SortedKeys(s.values) {
			if strings.HasPrefix(key, prefix) && c.shows(s, key) {
				keys = append(keys, key)
			}
		}
		return nil
	})
	return keys, err
}

// Put creates or replaces a value.
func (c Cloud) Put(ctx context.Context, key, value string) error {
	return c.call(ctx, "put", key, func(s *cloudState) error {
		s.set(key, value)
		return nil
	})
}

// Delete deletes a value. It returns [ErrAbsent] if the key does not exist.
func (c Cloud) Delete(ctx context.Context, key string) error {
	return c.call(ctx, "delete", key, func(s *cloudState) error {
		if _, ok := s.values[key]; !ok {
			return fmt.Errorf("%s: %w", key, ErrAbsent)
		}
		delete(s.values, key)
		s.version++
		return nil
	})
}

func (c Cloud) read(ctx context.Context, verb, key string, do func(*cloudState) error) error {
	r := c.process.run
	return c.process.submit(ctx, &call{
		Site: inject.Site{
			Act: "call", Kind: "cloud " + verb + " " + key,
		}, outside: true, do: func(client.Object) error { return do(&r.world.cloud) },
	})
}

func (c Cloud) call(ctx context.Context, verb, key string, do func(*cloudState) error) error {
	r := c.process.run
	return c.process.submit(ctx, &call{
		Site: inject.Site{
			Act: "call", Kind: "cloud " + verb + " " + key,
		}, outside: true, effect: true, do: func(client.Object) error {
			before := r.world.cloud.version
			_, existed := r.world.cloud.values[key]
			err := do(&r.world.cloud)
			if r.world.cloud.version != before {
				r.gateway.cloudChanged(verb, key, existed)
			}
			return err
		},
	})
}
