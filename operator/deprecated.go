// SPDX-License-Identifier: Apache-2.0

package operator

import "trueup.dev/informer"

// Names of Grafana App SDK for types that are declared elsewhere. `go fix` replaces them.

// Informer is an [informer.Informer].
//
// Deprecated: use [informer.Informer].
//
//go:fix inline
type Informer = informer.Informer

// InformerOptions are [informer.Options].
//
// Deprecated: use [informer.Options].
//
//go:fix inline
type InformerOptions = informer.Options

// CustomCacheInformer is an [informer.CustomCache].
//
// Deprecated: use [informer.CustomCache].
//
//go:fix inline
type CustomCacheInformer = informer.CustomCache
