// SPDX-License-Identifier: Apache-2.0

package defaults

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// Schemas caches the schemas of custom resources that it reads from API servers. The zero value is ready to use. It is
// safe for concurrent use.
type Schemas struct {
	mutex sync.Mutex
	read  map[source]*reading
}

// schemasTTL is how long a schema is used before it is read again, and failureTTL how long a failure is kept.
const (
	schemasTTL = time.Hour
	failureTTL = 10 * time.Minute
)

type source struct {
	server  discovery.DiscoveryInterface
	version schema.GroupVersion
}

type reading struct {
	schemas map[schema.GroupVersionKind]*Schema
	err     error
	until   time.Time
}

// For returns the schema of a kind. It requests the document of each version of a group at most once an hour. After a
// failure it returns the error, with fresh false, and retries after ten minutes at the earliest. If cached is set, it
// never sends a request. The schema is nil for a kind without defaults.
func (s *Schemas) For(
	server discovery.DiscoveryInterface, kind schema.GroupVersionKind, cached bool,
) (_ *Schema, known, fresh bool, _ error) {
	if server == nil {
		return nil, false, false, nil
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	from := source{server: server, version: kind.GroupVersion()}
	r := s.read[from]
	if r == nil || time.Now().After(r.until) {
		if cached {
			return nil, false, false, nil
		}
		r, fresh = &reading{until: time.Now().Add(schemasTTL)}, true
		if r.schemas, r.err = fetch(from); r.err != nil {
			r.until = time.Now().Add(failureTTL)
		}
		if s.read == nil {
			s.read = map[source]*reading{}
		}
		s.read[from] = r
	}
	found, known := r.schemas[kind]
	return found, known, fresh, r.err
}

func fetch(from source) (schemas map[schema.GroupVersionKind]*Schema, err error) {
	// The fake of client-go does not implement it and panics.
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("read OpenAPI documents: %v", cause)
		}
	}()
	paths, err := from.server.OpenAPIV3().Paths()
	if err != nil {
		return nil, fmt.Errorf("read OpenAPI documents: %w", err)
	}
	path := "apis/" + from.version.String()
	if from.version.Group == "" {
		path = "api/" + from.version.Version
	}
	published, ok := paths[path]
	if !ok {
		return nil, fmt.Errorf("no OpenAPI document for %s", from.version)
	}
	document, err := published.Schema("application/json")
	if err != nil {
		return nil, fmt.Errorf("read OpenAPI document of %s: %w", from.version, err)
	}
	return readSchemas(document)
}
