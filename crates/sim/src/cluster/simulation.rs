//! The simulation of a cluster, event by event. All random numbers come from [`Scenario::seed`]: the same scenario
//! and loads give the same reports.

use super::cleaner::{Cleaner, Need, Next};
use super::coordinator::Coordinator;
use super::disk::Disk;
use super::drive::Drive;
use super::events::Events;
use super::job::{Ended, Job, Owner, Work};
use super::model_disk::ModelDisk;
use super::network::Network;
use super::rebuild::{Rebuild, targets};
use super::report::Report;
use super::request::{Kind, Request, Requests};
use super::ring::{Part, Ring};
use super::run::{Run, Totals};
use super::scenario::{Coordination, Disks, Impossible, Layout, Load, Scenario};
use super::served_disk::ServedDisk;
use super::service::exponential;
use super::space::Space;
use super::turns::{AtOnce, Rules};
use super::zone_slots::ZoneSlots;
use crate::policy::Policy;
use drive_model::{Span, Time};
use std::collections::VecDeque;
use std::ops::Range;
use zone_alloc::{CleaningPolicy, Filling, Pace, Pacer, Watermarks};

/// Drives that are aged one by one; each of the others is a copy of one, overwritten a little more.
const AGED: u32 = 16;
/// The shortest time between two rounds of turns.
const LEAST_BETWEEN_TURNS: Span = Span::from_nanos(100_000_000);
/// Events between two calls of `watch`.
const EVENTS_AT_ONCE: u32 = 65_536;

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A request of this run arrives at random ([`Load::per_second`]).
    Comes(u32),
    /// A client of this run begins its next request.
    Client(u32, u32),
    /// The proxy has received the whole of a write.
    AtProxy(u32),
    /// A part of a write arrives at the node of this drive.
    AtNode(u32, u32),
    /// A part of a request arrives at this drive.
    AtDrive(u32, u32),
    /// The disk of a drive may have ended a job.
    Wakes(u32),
    /// A part of a read arrives at its proxy's interface.
    ToProxy(u32),
    /// The proxy has received a part of a read.
    Received(u32),
    /// The proxy hears that a part of a write is durable.
    Durable(u32),
    /// The proxy no longer waits for the last parts of a write. The time is when the write began, as numbers are
    /// reused.
    Enough(u32, Time),
    /// A part for a rebuild arrives at the node that gets the lost part.
    Gathered(u32),
    /// The proxies hear whether a drive cleans.
    News(u32, bool),
    /// The next round of turns.
    Turns,
    /// The cleaner of a drive may go on.
    Clean(u32),
    /// The rebuild begins its next object in this run.
    Rebuild(u32),
    /// A drive is lost.
    Lose,
}

/// A cluster in virtual time, for one load after another.
#[derive(Debug)]
pub struct Simulation {
    scenario: Scenario,
    policy: Box<dyn CleaningPolicy>,
    free: Watermarks,
    part_bytes: u64,
    ring: Ring,
    /// By partition: index + 1 of the part that is not rebuilt yet; 0 if none is missing.
    missing: Vec<u8>,
    drives: Vec<Drive>,
    network: Network,
    requests: Requests,
    coordinator: Coordinator,
    /// Number of the last run; events of earlier ones that are still to come mean nothing.
    run: u32,
    /// Whether the loss of a drive has been entered.
    loses: bool,
    rebuild: Option<Rebuild>,
    read_for_rebuild: u64,
    events: Events<Event>,
    random: fastrand::Rng,
    written_bytes: u64,
    waited: u64,
    gives_turns: bool,
    is_full: bool,
}

impl Simulation {
    /// A cluster with aged drives, and nothing under way.
    ///
    /// # Errors
    /// [`Scenario::check`] fails, the profile cannot be built, or the data does not fit on a drive.
    pub fn new(scenario: &Scenario) -> Result<Self, Impossible> {
        Self::watched(scenario, &mut |_| true)
    }

    /// The same; `watch` is called before each drive is aged with the share that is done, and returns whether to go on.
    ///
    /// # Errors
    /// Those of [`Self::new`], or `watch` returned false.
    pub fn watched(
        scenario: &Scenario,
        watch: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Self, Impossible> {
        scenario.check()?;
        let (drives, part_bytes) = (scenario.drives(), scenario.part_bytes());
        let mut random = fastrand::Rng::with_seed(scenario.seed);
        let width = scenario.redundancy.width();
        let ring = Ring::new(
            scenario.places(),
            (width, scenario.partitions_a_drive),
            &mut random,
        );
        let (free, pace, policy) = match &scenario.layout {
            Layout::Blocks { .. } => (Watermarks::default(), Pace::Full, Policy::Greedy),
            Layout::Zones {
                free_zones,
                pace,
                policy,
                ..
            } => (*free_zones, *pace, *policy),
        };
        let rules = Rules {
            turn_seconds: scenario.turn.seconds(),
            at_once: AtOnce::Percent(f64::from(scenario.budget_percent)),
            ..Rules::default()
        };
        let limit = scenario.redundancy.clean_at_once();
        let groups = ring.groups(scenario.places(), limit);
        let mut simulation = Self {
            policy: policy.decides(scenario.seed),
            free,
            part_bytes,
            missing: vec![0; ring.partitions() as usize],
            drives: Vec::with_capacity(drives as usize),
            network: Network::new(
                (scenario.proxies, scenario.nodes),
                scenario.drives_per_node,
                scenario.link_bytes_per_second,
                scenario.hop,
            ),
            requests: Requests::default(),
            coordinator: Coordinator::new(scenario.coordination, groups, rules, drives),
            run: 0,
            loses: false,
            rebuild: None,
            read_for_rebuild: 0,
            events: Events::default(),
            random,
            written_bytes: 0,
            waited: 0,
            gives_turns: false,
            is_full: false,
            ring,
            scenario: scenario.clone(),
        };
        simulation.add_drives(pace, watch)?;
        Ok(simulation)
    }

    fn add_drives(
        &mut self,
        pace: Pace,
        watch: &mut dyn FnMut(f64) -> bool,
    ) -> Result<(), Impossible> {
        let scenario = &self.scenario;
        let layout = &scenario.layout;
        let exact = matches!(scenario.disks, Disks::Models { .. });
        let mut aged: Vec<Space> = Vec::new();
        let mut ready = Time::START;
        for number in 0..scenario.drives() {
            if !watch(f64::from(number) / f64::from(scenario.drives())) {
                return Err(Impossible::Interrupted);
            }
            let seed = scenario
                .seed
                .wrapping_mul(1_000_003)
                .wrapping_add(u64::from(number) + 1);
            let mut random = fastrand::Rng::with_seed(seed);
            let space = match aged.get((number % AGED) as usize) {
                Some(like) => like.clone(),
                None => {
                    let mut space = Space::new(layout, self.part_bytes, exact);
                    if !space.fill(layout, &*self.policy, &mut random) {
                        return Err(Impossible::Full);
                    }
                    aged.push(space.clone());
                    space
                }
            };
            let mut space = space;
            if let Some(zones) = space.zones_mut().filter(|zones| zones.live() > 0) {
                // Drives are to be at different points of filling their zones.
                let some = random.u64(..u64::from(zones.slots()));
                zones.overwrite(some, (&*self.policy, self.free), &mut random);
                if scenario.coordination == Coordination::Turns {
                    let (least, most) = self.free.of(zones.zones());
                    zones.use_up(random.u32(least..=most), &mut random);
                }
            }
            let disk = match &scenario.disks {
                Disks::Served(times) => {
                    Disk::Served(Box::new(ServedDisk::new(times.clone(), random.fork())))
                }
                Disks::Models { profile, back_end } => {
                    let bytes = match layout {
                        Layout::Blocks { bytes, .. } => *bytes,
                        Layout::Zones {
                            zones, zone_bytes, ..
                        } => u64::from(*zones) * zone_bytes,
                    };
                    let mut disk = ModelDisk::new(profile, seed, *back_end, (bytes, false))?;
                    let mut now = Time::START;
                    for (at, bytes) in space.written() {
                        now = disk.prefill(at, bytes, now);
                    }
                    ready = ready.max(now);
                    Disk::Model(Box::new(disk))
                }
            };
            self.drives.push(Drive {
                disk,
                free_seen: space.zones().map_or(0, ZoneSlots::free),
                space,
                cleaner: Cleaner::new(Pacer::new(pace)),
                turn_until: Time::START,
                hold_until: Time::START,
                followed: 0,
                written_bytes: 0,
                filling: Filling::default(),
                filled_before_turn: 0,
                waiting: VecDeque::new(),
                users: zone_alloc::Requests::default(),
                is_lost: false,
                wakes_at: None,
                cleans_at: None,
                random,
            });
        }
        self.events.pass_until(ready);
        Ok(())
    }

    /// The parameters of this simulation.
    pub const fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Deletes the share `part` of each drive's live objects, in no virtual time.
    pub fn delete(&mut self, part: f64) {
        for drive in &mut self.drives {
            let dead = (drive.space.live() as f64 * part) as u64;
            for _ in 0..dead {
                drive.space.kill(&mut drive.random);
            }
        }
    }

    /// Has the drives of these nodes clean all zones with dead bytes from now on.
    pub fn ask_to_clean(&mut self, nodes: Range<u32>) {
        let each = self.scenario.drives_per_node;
        for drive in nodes.start * each..nodes.end * each {
            if let Some(asked) = self.drives.get_mut(drive as usize) {
                asked.cleaner.asked = true;
                self.clean(drive);
            }
        }
    }

    /// Lets virtual time pass without new requests.
    pub fn pause(&mut self, seconds: f64) {
        let end = self.events.now() + Span::from_seconds(seconds);
        let mut run = Run::nothing();
        while self.events.next_at().is_some_and(|at| at <= end) {
            self.step(&mut run);
        }
        self.events.pass_until(end);
    }

    /// Runs a load. `watch` is called now and then with the share that is done, and returns whether to go on.
    ///
    /// # Errors
    /// [`Load::check`] fails, a drive is full, `watch` returned false, or a model refused a request.
    pub fn run(
        &mut self,
        load: &Load,
        watch: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Report, Impossible> {
        load.check()?;
        let begun = self.events.now();
        let mut run = Run::new(*load, begun);
        self.run += 1;
        if load.per_second > 0.0 {
            self.next_arrival(&run);
        }
        (0..load.readers + load.writers)
            .for_each(|client| self.events.at(begun, Event::Client(self.run, client)));
        if let Some(rebuild) = &mut self.rebuild {
            rebuild.goes_on();
            self.events.at(begun, Event::Rebuild(self.run));
        }
        if let Some(lost) = self.scenario.lost
            && !std::mem::replace(&mut self.loses, true)
        {
            self.events
                .at(begun + Span::from_seconds(lost.after_seconds), Event::Lose);
        }
        if self.coordinator.gives_turns() && !self.gives_turns {
            self.gives_turns = true;
            self.events.at(begun, Event::Turns);
        }
        let mut count = 0u32;
        while let Some(at) = self.events.next_at() {
            if run.is_counted_from(at) {
                run.at_first = self.totals(run.counted_from());
            }
            if run.is_over_at(at) {
                run.at_last = self.totals(run.counted_to().unwrap_or(at));
                run.is_open = false;
            }
            if !run.is_open && self.requests.of_users() == 0 {
                break;
            }
            if self.is_full {
                return Err(Impossible::Full);
            }
            if count.is_multiple_of(EVENTS_AT_ONCE) && !watch(run.progress(at)) {
                return Err(Impossible::Interrupted);
            }
            self.step(&mut run);
            count = count.wrapping_add(1);
        }
        if self.is_full {
            return Err(Impossible::Full);
        }
        if run.is_open || run.counted_to().is_none() {
            run.at_last = self.totals(run.counted_to().unwrap_or(run.last_answer));
        }
        let refused = self.drives.iter().map(|drive| drive.disk.refused()).sum();
        if refused > 0 {
            return Err(Impossible::Refused(refused));
        }
        let rebuild = self.rebuild.as_ref();
        Ok(run.report(
            &self.scenario,
            rebuild,
            self.read_for_rebuild,
            self.events.entered(),
        ))
    }

    fn totals(&self, now: Time) -> Totals {
        let mut totals = Totals {
            at: now,
            written_bytes: self.written_bytes,
            waited: self.waited,
            node_bytes: self.network.node_bytes(),
            shifts: self.coordinator.shifts(),
            turns: self.coordinator.counts,
            ..Totals::default()
        };
        for drive in &self.drives {
            let cleaner = drive.cleaner.counts(now);
            totals.busy += drive.disk.busy(now).seconds();
            totals.cleaning += cleaner.cleaning.seconds();
            totals.moved_bytes += cleaner.moved_bytes;
            totals.zones += cleaner.zones;
            totals.free_zones += u64::from(drive.space.zones().map_or(0, ZoneSlots::free));
        }
        totals
    }

    fn next_arrival(&mut self, run: &Run) {
        let mean = 1e9 / run.load.per_second;
        let at = self.events.now() + exponential(mean, &mut self.random);
        self.events.at(at, Event::Comes(self.run));
    }

    fn step(&mut self, run: &mut Run) {
        let Some(event) = self.events.next() else {
            return;
        };
        let now = self.events.now();
        match event {
            Event::Comes(of) if run.begins_more() && of == self.run => {
                let reads = self.random.f64() < run.load.reads;
                self.begin(run, reads, None);
                self.next_arrival(run);
            }
            Event::Client(of, client) if run.begins_more() && of == self.run => {
                self.begin(run, client < run.load.readers, Some(client));
            }
            Event::Comes(_) | Event::Client(..) => {}
            Event::AtProxy(number) => self.send_parts(number),
            Event::AtNode(number, drive) => {
                let at = self
                    .network
                    .node_of(drive)
                    .receives
                    .send(self.part_bytes, now);
                self.events.at(at, Event::AtDrive(number, drive));
            }
            Event::AtDrive(number, drive) => self.at_drive(run, number, drive),
            Event::Wakes(drive) => self.wakes(drive),
            Event::ToProxy(number) => {
                if let Some(request) = self.requests.get(number) {
                    let at = self
                        .network
                        .proxy(request.proxy)
                        .receives
                        .send(self.part_bytes, now);
                    self.events.at(at, Event::Received(number));
                }
            }
            Event::Received(number) | Event::Durable(number) => self.part_there(run, number),
            Event::Enough(number, begun) => {
                let is_it = |request: &&mut Request| request.begun == begun && !request.answered;
                if self.requests.get(number).filter(is_it).is_some() {
                    self.answer(run, number);
                }
            }
            Event::Gathered(number) => self.gathered(number),
            Event::News(drive, cleans) => self.coordinator.hears(drive, cleans),
            Event::Turns => self.give_turns(run),
            Event::Clean(drive) => {
                let its = &mut self.drives[drive as usize];
                if its.cleans_at == Some(now) {
                    its.cleans_at = None;
                    self.clean(drive);
                }
            }
            Event::Rebuild(of) if of == self.run => self.rebuild_next(run),
            Event::Rebuild(_) => {}
            Event::Lose => self.lose(),
        }
    }

    /// Begins a user's request, for a random partition.
    fn begin(&mut self, run: &mut Run, reads: bool, client: Option<u32>) {
        let now = self.events.now();
        let redundancy = self.scenario.redundancy;
        let partition = self.random.u32(..self.ring.partitions());
        let proxy = self.random.u32(..self.scenario.proxies);
        let (kind, needed, under_way) = match reads {
            true => (Kind::Read, redundancy.to_read(), redundancy.to_read()),
            false => (Kind::Write, redundancy.to_write(), redundancy.width()),
        };
        let number = self.requests.begin(Request {
            kind,
            begun: now,
            proxy,
            partition,
            client,
            needed,
            there: 0,
            under_way,
            counts: run.begin(reads, now),
            answered: false,
        });
        let at = self.network.message(now);
        if reads {
            let at = self.network.message(at);
            for drive in self.read_from(partition) {
                self.events.at(at, Event::AtDrive(number, drive));
            }
        } else {
            let object = self.scenario.object_bytes;
            let at = self.network.proxy(proxy).receives.send(object, at);
            self.events.at(at, Event::AtProxy(number));
        }
    }

    /// The drives that a read takes its parts from, at random; those that are known to clean come last.
    fn read_from(&mut self, partition: u32) -> Vec<u32> {
        let missing = usize::from(self.missing[partition as usize]);
        let all = (1..).zip(self.ring.drives(partition));
        let mut there: Vec<u32> = all
            .filter(|(n, _)| *n != missing)
            .map(|(_, drive)| *drive)
            .collect();
        self.random.shuffle(&mut there);
        if self.coordinator.orders_reads() {
            let now = self.events.now();
            there.sort_by_key(|drive| {
                self.coordinator
                    .is_known_to_clean(*drive, now, &self.drives)
            });
        }
        there.truncate(self.scenario.redundancy.to_read() as usize);
        there
    }

    fn send_parts(&mut self, number: u32) {
        let now = self.events.now();
        let Some(request) = self.requests.get(number) else {
            return;
        };
        let hop = self.network.hop();
        for drive in self.ring.drives(request.partition) {
            let at = self
                .network
                .proxy(request.proxy)
                .sends
                .send(self.part_bytes, now)
                + hop;
            self.events.at(at, Event::AtNode(number, *drive));
        }
    }

    fn at_drive(&mut self, run: &Run, number: u32, drive: u32) {
        let Some(request) = self.requests.get(number) else {
            return;
        };
        let (is_rebuild, is_read) = match request.kind {
            Kind::Read => (false, true),
            Kind::Write => (false, false),
            Kind::Rebuild { .. } => (true, request.there < request.needed),
        };
        let its = &mut self.drives[drive as usize];
        its.users.under_way += 1;
        if is_read {
            let counts = &mut self.coordinator.counts;
            counts.reads += u64::from(!is_rebuild);
            counts.reads_beside += u64::from(!is_rebuild && its.cleaner.since.is_some());
            let from = its.space.read(&mut its.random);
            self.take(drive, number, Work::Read, (from, 0));
            return;
        }
        if !is_rebuild && run.load.overwrites {
            its.space.kill(&mut its.random);
        }
        self.written_bytes += self.part_bytes;
        its.written_bytes += self.part_bytes;
        // A write queues after those that wait for a zone.
        match its.waiting.is_empty().then(|| its.space.write()).flatten() {
            Some(to) => self.take(drive, number, Work::Write, (0, to)),
            None => {
                self.waited += 1;
                self.drives[drive as usize].waiting.push_back(number);
                self.clean(drive);
            }
        }
        if self.drives[drive as usize].has_changed() {
            self.clean(drive);
        }
    }

    fn take(&mut self, drive: u32, number: u32, work: Work, (from, to): (u64, u64)) {
        let job = Job {
            owner: Owner::Request(number),
            work,
            bytes: self.part_bytes,
            from,
            to,
        };
        self.drives[drive as usize]
            .disk
            .take(job, self.events.now());
        self.wake_later(drive);
    }

    fn wake_later(&mut self, drive: u32) {
        let its = &mut self.drives[drive as usize];
        if let Some(next) = its.disk.next_moment()
            && its.wakes_at.is_none_or(|at| next < at)
        {
            let next = next.max(self.events.now());
            its.wakes_at = Some(next);
            self.events.at(next, Event::Wakes(drive));
        }
    }

    fn wakes(&mut self, drive: u32) {
        let now = self.events.now();
        let its = &mut self.drives[drive as usize];
        if its.wakes_at != Some(now) {
            return;
        }
        its.wakes_at = None;
        while let Some(ended) = self.drives[drive as usize].disk.ended_by(now) {
            match ended.owner {
                Owner::Cleaner => {
                    self.drives[drive as usize].cleaner.has_piece = false;
                    self.clean(drive);
                }
                Owner::Request(number) => self.job_done(number, drive, ended),
            }
        }
        self.wake_later(drive);
    }

    fn job_done(&mut self, number: u32, drive: u32, ended: Ended) {
        let now = self.events.now();
        let hop = self.network.hop();
        let its = &mut self.drives[drive as usize];
        its.users.under_way = its.users.under_way.saturating_sub(1);
        its.users.last_ended = std::time::Duration::from_nanos(now.nanos());
        let Some(request) = self.requests.get(number) else {
            return;
        };
        match request.kind {
            Kind::Read => {
                its.users.reads += 1;
                its.users.slow += u64::from(its.cleaner.is_slow(ended.took));
                let at = self.network.node_of(drive).sends.send(self.part_bytes, now) + hop;
                self.events.at(at, Event::ToProxy(number));
            }
            Kind::Write => self.events.at(now + hop, Event::Durable(number)),
            Kind::Rebuild { .. } if request.there < request.needed => {
                self.read_for_rebuild += self.part_bytes;
                let at = self.network.node_of(drive).sends.send(self.part_bytes, now) + hop;
                self.events.at(at, Event::Gathered(number));
            }
            Kind::Rebuild { part, .. } => {
                self.requests.end(number);
                self.rebuilt(part);
            }
        }
    }

    /// Counts a part of a user's request that is received or durable; answers when enough are.
    fn part_there(&mut self, run: &mut Run, number: u32) {
        let now = self.events.now();
        let Some(request) = self.requests.get(number) else {
            return;
        };
        request.there += 1;
        request.under_way -= 1;
        let request = *request;
        let waits = self.scenario.after_quorum;
        let is_whole = request.under_way == 0;
        if request.there == request.needed && !is_whole && waits > Span::ZERO {
            self.events
                .at(now + waits, Event::Enough(number, request.begun));
        } else if request.there >= request.needed
            && !request.answered
            && (is_whole || waits == Span::ZERO)
        {
            self.answer(run, number);
        }
        if is_whole {
            self.requests.end(number);
        }
    }

    /// Sends the answer, after which a client begins its next request.
    fn answer(&mut self, run: &mut Run, number: u32) {
        let now = self.events.now();
        let Some(request) = self.requests.get(number) else {
            return;
        };
        request.answered = true;
        let request = *request;
        let is_read = request.kind == Kind::Read;
        let object = self.scenario.object_bytes;
        let sent = match is_read {
            true => self.network.proxy(request.proxy).sends.send(object, now),
            false => now,
        };
        let at = self.network.message(sent);
        run.answer(is_read, request.counts, request.begun, at);
        if let Some(client) = request.client {
            self.events.at(at, Event::Client(self.run, client));
        }
    }

    /// The drives apply the last table of turns, and the next one is decided.
    fn give_turns(&mut self, run: &Run) {
        let now = self.events.now();
        self.coordinator.goes_on(&mut self.drives, self.free, now);
        for drive in 0..self.scenario.drives() {
            self.clean(drive);
        }
        self.gives_turns = run.is_open;
        if self.gives_turns {
            let between = self.scenario.news_delay.max(LEAST_BETWEEN_TURNS);
            self.events.at(now + between, Event::Turns);
        }
    }

    /// Runs a drive's cleaner until it moves a piece, has to wait, or is done.
    fn clean(&mut self, drive: u32) {
        let now = self.events.now();
        loop {
            let its = &mut self.drives[drive as usize];
            if its.cleaner.has_piece {
                return;
            }
            let Some((need, pressure)) = its.need(self.free) else {
                return self.stop_cleaning(drive);
            };
            if need == Need::Wants && its.is_held(now) {
                return self.stop_cleaning(drive);
            }
            if its.cleaner.since.is_none() {
                let forced = need == Need::Must && its.is_held(now);
                let its = &mut self.drives[drive as usize];
                if !its.space.begin(&*self.policy, pressure) {
                    // The drive is full. This cannot happen where objects are overwritten.
                    self.is_full |= !its.waiting.is_empty();
                    return;
                }
                self.coordinator.begins(drive, forced);
                self.set_cleaning(drive, true);
            }
            let its = &mut self.drives[drive as usize];
            let users = (now, &its.users);
            let next = its.cleaner.next(
                &mut its.space,
                &*self.policy,
                (need, pressure),
                users,
                self.part_bytes,
            );
            match next {
                Next::Move(job) => {
                    its.disk.take(job, now);
                    return self.wake_later(drive);
                }
                Next::Reset(at) => {
                    its.disk.reset(at, now);
                    self.admit(drive);
                }
                Next::Wait(at) if at > now => {
                    if its.cleans_at.is_none_or(|other| at < other) {
                        its.cleans_at = Some(at);
                        self.events.at(at, Event::Clean(drive));
                    }
                    return;
                }
                Next::Wait(_) => {}
                Next::Nothing => {
                    self.is_full |= !self.drives[drive as usize].waiting.is_empty();
                    return self.stop_cleaning(drive);
                }
            }
        }
    }

    fn set_cleaning(&mut self, drive: u32, is_so: bool) {
        let now = self.events.now();
        self.drives[drive as usize].cleaner.set_cleaning(is_so, now);
        self.events
            .at(now + self.scenario.news_delay, Event::News(drive, is_so));
    }

    fn stop_cleaning(&mut self, drive: u32) {
        if self.drives[drive as usize].cleaner.since.is_some() {
            self.coordinator.ends(drive);
            self.set_cleaning(drive, false);
        }
    }

    /// Starts waiting writes, the oldest first, while there is room.
    fn admit(&mut self, drive: u32) {
        loop {
            let its = &mut self.drives[drive as usize];
            let Some(number) = its.waiting.front().copied() else {
                return;
            };
            let Some(to) = its.space.write() else {
                return;
            };
            its.waiting.pop_front();
            self.take(drive, number, Work::Write, (0, to));
        }
    }

    /// Loses a drive, the middle one by number. Other drives get its parts, which are missing there until they are
    /// rebuilt. Jobs on their way to the lost drive still end.
    fn lose(&mut self) {
        let now = self.events.now();
        let Some(lost) = self.scenario.lost else {
            return;
        };
        let (drives, each) = (self.scenario.drives(), self.scenario.drives_per_node);
        let drive = drives / 2;
        let targets = targets(&self.ring, drive, drives, each, &mut self.random);
        for (part, to) in &targets {
            self.ring.hand_over(*part, *to);
            self.missing[part.partition as usize] = part.index as u8 + 1;
            self.coordinator.join(*to, part.partition);
        }
        let its = &mut self.drives[drive as usize];
        its.is_lost = true;
        let counted = its.space.live();
        let objects = match counted {
            0 => (self.scenario.layout.live_bytes() / self.part_bytes as f64) as u64,
            counted => counted,
        };
        let how = (self.part_bytes, lost.bytes_per_second);
        self.rebuild = Some(Rebuild::new(targets, objects, how, now));
        self.events.at(now, Event::Rebuild(self.run));
    }

    fn rebuild_next(&mut self, run: &Run) {
        let now = self.events.now();
        let Some((step, next)) = self
            .rebuild
            .as_mut()
            .filter(|_| run.is_open)
            .and_then(|rebuild| rebuild.next(now))
        else {
            return;
        };
        let partition = step.part.partition;
        let needed = self.scenario.redundancy.to_read();
        let number = self.requests.begin(Request {
            kind: Kind::Rebuild {
                to: step.to,
                part: step.part,
            },
            begun: now,
            proxy: 0,
            partition,
            client: None,
            needed,
            there: 0,
            under_way: needed,
            counts: false,
            answered: false,
        });
        let at = self.network.message(now);
        for drive in self.read_from(partition) {
            self.events.at(at, Event::AtDrive(number, drive));
        }
        self.events.at(next, Event::Rebuild(self.run));
    }

    fn gathered(&mut self, number: u32) {
        let now = self.events.now();
        let Some(request) = self.requests.get(number) else {
            return;
        };
        request.there += 1;
        if let Kind::Rebuild { to, .. } = request.kind {
            let is_whole = request.there == request.needed;
            let at = self.network.node_of(to).receives.send(self.part_bytes, now);
            if is_whole {
                self.events.at(at, Event::AtDrive(number, to));
            }
        }
    }

    fn rebuilt(&mut self, part: Part) {
        let now = self.events.now();
        let Some(rebuild) = &mut self.rebuild else {
            return;
        };
        let goes_on = rebuild.goes_on();
        if rebuild.done(part, now) {
            self.missing[part.partition as usize] = 0;
        }
        if goes_on {
            self.events.at(now, Event::Rebuild(self.run));
        }
    }
}
