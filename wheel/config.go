package wheel

import (
	"errors"
	"fmt"
	"math/bits"
)

// Limits and defaults of a wheel's shape.
const (
	DefaultTick   = 1   // ms: Hierarchical and SingleLevel
	DefaultSlots  = 256 // Hierarchical: slots a level
	DefaultLevels = 5   // Hierarchical: 256^5 ms is 34.8 years

	DefaultSingleSlots = 512 // SingleLevel: slots of its one ring

	// MaxSlots bounds a ring, so that looking for the next occupied slot
	// stays a glance at a few words.
	MaxSlots = 4096

	// MaxBits bounds log2(Slots) * Levels: the last bits of a tick number are
	// its sign, which has no place in a ring.
	MaxBits = 62
)

// ErrConfig is the class of every complaint about a [Config] or a
// [SingleConfig].
var ErrConfig = errors.New("wheel: bad configuration")

// A Config is the shape of a [Hierarchical] wheel. A zero field stands for its
// default.
type Config struct {
	Tick   int64 // ms a tick, at least 1; default DefaultTick
	Slots  int   // slots a level, a power of two in 2..MaxSlots; default DefaultSlots
	Levels int   // rings, at least 1, log2(Slots)*Levels at most MaxBits; default DefaultLevels
}

// Validate reports everything that is wrong with c at once; each complaint is
// of the class [ErrConfig]. Zero fields are valid.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	if c.Tick < 1 {
		errs = append(errs, fmt.Errorf("%w: tick %d ms, want at least 1", ErrConfig, c.Tick))
	}
	if c.Levels < 1 {
		errs = append(errs, fmt.Errorf("%w: %d levels, want at least 1", ErrConfig, c.Levels))
	}
	switch {
	case c.Slots < 2 || c.Slots > MaxSlots:
		errs = append(errs, fmt.Errorf("%w: %d slots, want 2 to %d", ErrConfig, c.Slots, MaxSlots))
	case c.Slots&(c.Slots-1) != 0:
		errs = append(errs, fmt.Errorf("%w: %d slots, want a power of two", ErrConfig, c.Slots))
	case c.Levels > MaxBits/c.slotBits():
		errs = append(errs, fmt.Errorf("%w: %d levels of %d slots, want at most %d levels",
			ErrConfig, c.Levels, c.Slots, MaxBits/c.slotBits()))
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	if c.Tick == 0 {
		c.Tick = DefaultTick
	}
	if c.Slots == 0 {
		c.Slots = DefaultSlots
	}
	if c.Levels == 0 {
		c.Levels = DefaultLevels
	}
	return c
}

// slotBits returns log2 of the slots a level.
func (c Config) slotBits() int { return bits.TrailingZeros(uint(c.Slots)) }

// A SingleConfig is the shape of a [SingleLevel] wheel. A zero field stands
// for its default.
type SingleConfig struct {
	Tick  int64 // ms a tick, at least 1; default DefaultTick
	Slots int   // slots of the ring, 1..MaxSlots, any number; default DefaultSingleSlots
}

// Validate reports everything that is wrong with c at once; each complaint is
// of the class [ErrConfig]. Zero fields are valid.
func (c SingleConfig) Validate() error {
	c = c.withDefaults()
	var errs []error
	if c.Tick < 1 {
		errs = append(errs, fmt.Errorf("%w: tick %d ms, want at least 1", ErrConfig, c.Tick))
	}
	if c.Slots < 1 || c.Slots > MaxSlots {
		errs = append(errs, fmt.Errorf("%w: %d slots, want 1 to %d", ErrConfig, c.Slots, MaxSlots))
	}
	return errors.Join(errs...)
}

func (c SingleConfig) withDefaults() SingleConfig {
	if c.Tick == 0 {
		c.Tick = DefaultTick
	}
	if c.Slots == 0 {
		c.Slots = DefaultSingleSlots
	}
	return c
}
