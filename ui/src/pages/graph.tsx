// Graph: the map of all entities. Communities from far, entities from near, one entity with its neighbours, and paths.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, query, send, workspaceUrl, type Problem } from "../api";
import { loadMap, MAX_DETAILED, neighboursOf, paletteColour, placesOfTypes, sceneOf, tilesInView, type Box, type Colouring, type GraphMap, type MapQuery } from "../graph_map";
import { announce, asProblem, Await, Empty, ProblemNotice, save, say, Tabs, useLoaded, Waiting } from "../parts";
import { startRenderer, type Marks, type Renderer } from "../renderer";
import { go, href, route } from "../route";
import { number, t } from "../words";
import type { Entity, Relation } from "../types";

const N_NEIGHBOURS = 60; // shown at first around one entity
const MAX_NEAR = 2_000;
const N_ROWS = 100; // of a table, shown at first
const N_COMMUNITIES = 30; // in the legend
const NO_MARKS: Marks = { nodes: [], lines: [] };

interface EntityPath {
  entities: Entity[];
  relations: Relation[];
}

/** A community or an entity that was chosen on the map. */
interface Chosen {
  kind: "community" | "entity";
  id: string;
  label: string;
}

const COLOURINGS: Colouring[] = ["type", "community"];

/** What the address says of the map. */
interface Address {
  name: string;
  to: string;
  path: number;
  near: number;
  detail: string;
  colours: Colouring | ""; // "": what the size of the graph suggests
  tab: "map" | "table";
  type: string[];
  community: string[];
}

function readAddress(): Address {
  const { subject, params } = route.value;
  return {
    name: subject,
    to: params.get("to") ?? "",
    path: Number(params.get("path") ?? 0),
    near: Number(params.get("near") ?? N_NEIGHBOURS),
    detail: params.get("detail") ?? "",
    colours: COLOURINGS.find((name) => name === params.get("colours")) ?? "",
    tab: params.get("tab") === "table" ? "table" : "map",
    type: params.getAll("type"),
    community: params.getAll("community"),
  };
}

/** Return the address of the map with some changes. */
function addressWith(changes: Partial<Address>): string {
  const { name, path, near, colours, tab, ...rest } = { ...readAddress(), ...changes };
  return href("graph", name, {
    ...rest,
    path: path || undefined,
    near: near === N_NEIGHBOURS ? undefined : near,
    colours: colours || undefined,
    tab: tab === "map" ? undefined : tab,
  });
}

/** A large graph is first shown as communities, which differ less by their types than by themselves. */
function coloursOf({ colours }: Address, overview: GraphMap): Colouring {
  return colours || (overview.n_entities > MAX_DETAILED ? "community" : "type");
}

const change = (changes: Partial<Address>) => go(addressWith(changes), true);

export function GraphView() {
  const overview = useLoaded((abort) => loadMap({ level: "far" }, abort), route.value.workspace);
  return (
    <div class="graph">
      <h1>{t("nav.graph")}</h1>
      <Await from={overview}>
        {(map) =>
          map.n_entities ? (
            <GraphPage key={map.revision} overview={map} />
          ) : (
            <Empty title={t("graph.empty")}>
              <p>
                <a href={href("documents")}>{t("graph.addFirst")}</a>
              </p>
            </Empty>
          )
        }
      </Await>
    </div>
  );
}

function GraphPage({ overview }: { overview: GraphMap }) {
  const address = readAddress();
  const { name, to, detail, tab } = address;
  const [view, setView] = useState<Box>(overview.bounds);
  const [chosen, setChosen] = useState<Chosen>();
  const renderer = useRef<Renderer | undefined>(undefined);
  const paths = useLoaded<EntityPath[]>(async (abort) => (name && to ? get("/paths", { first: name, second: to, k: 5 }, abort) : []), `${name} ${to}`);
  const path = to ? paths.value?.[address.path] : undefined;
  const wanted = JSON.stringify(mapQuery(address, path, overview, view, detail));
  const picture = useLoaded((abort) => loadMap(JSON.parse(wanted), abort), wanted);
  const map = picture.value;
  useEffect(() => {
    if (map && !picture.isLoading) announce(countsOf(map));
  }, [map]);
  const onNode = (node?: number) => setChosen(node === undefined || !map ? undefined : chosenAt(map, node));
  return (
    <>
      <div class="graph-bar">
        <EntitySearch label={t("graph.search")} choose={(entity) => go(addressWith({ name: entity.key, to: "", path: 0, near: N_NEIGHBOURS }))} />
        {name && (
          <a class="button" href={addressWith({ name: "", to: "", path: 0, near: N_NEIGHBOURS })}>
            {t("graph.whole")}
          </a>
        )}
        <Tabs
          label={t("graph.views")}
          chosen={tab}
          choose={(chosenTab) => change({ tab: chosenTab })}
          tabs={[
            ["map", t("graph.map")],
            ["table", t("graph.table")],
          ]}
        />
        <label class="field">
          {t("graph.detail")}
          <select value={detail} disabled={!!name} onChange={(event) => change({ detail: event.currentTarget.value })}>
            <option value="">{t("graph.automatic")}</option>
            <option value="far">{t("graph.communities")}</option>
            <option value="middle">{t("nav.entities")}</option>
          </select>
        </label>
        <label class="field">
          {t("graph.colours")}
          <select value={coloursOf(address, overview)} onChange={(event) => change({ colours: event.currentTarget.value as Colouring })}>
            <option value="type">{t("graph.byType")}</option>
            <option value="community">{t("graph.byCommunity")}</option>
          </select>
        </label>
      </div>
      <div class="graph-body">
        <div class="graph-main" role="tabpanel" aria-busy={picture.isLoading} aria-label={t(tab === "map" ? "graph.map" : "graph.table")}>
          {tab === "map" ? (
            <MapCanvas overview={overview} map={map} chosen={chosen} path={path} onMove={setView} onNode={onNode} renderer={renderer} />
          ) : (
            map && <Tables map={map} />
          )}
          {picture.problem && <ProblemNotice problem={picture.problem} retry={picture.reload} />}
          {picture.isLoading && !map && <Waiting />}
          {map && (
            <p class="small">
              {[countsOf(map), map.n_more_nodes > 0 && map.level !== "near" && t("graph.more", { n: map.n_more_nodes })].filter(Boolean).join(" · ")}
            </p>
          )}
        </div>
        <div class="graph-side">
          {name && <Focus name={name} address={address} map={map} paths={paths} />}
          {chosen && chosen.id !== name && <ChosenCard key={chosen.id} chosen={chosen} focus={name} zoom={(box) => renderer.current?.fit(box)} map={map} />}
          <Legend overview={overview} address={address} />
          <Export address={address} renderer={renderer} />
        </div>
      </div>
    </>
  );
}

function mapQuery({ name, to, near, type, community }: Address, path: EntityPath | undefined, overview: GraphMap, view: Box, detail: string): MapQuery {
  if (to && path) return { level: "near", name: path.entities.map((entity) => entity.key), max_nodes: path.entities.length };
  if (name) return { level: "near", name: [name], type, community, max_nodes: near };
  const tiles = tilesInView(overview.n_entities, overview.bounds, view);
  return { ...tiles, level: (detail || tiles.level) as MapQuery["level"], type, community };
}

function countsOf(map: GraphMap): string {
  const n = map.ids.length;
  return `${map.level === "far" ? t("count.communities", { n }) : t("count.entities", { n })} · ${t("count.relations", { n: map.edges.weight.length })}`;
}

function chosenAt(map: GraphMap, node: number): Chosen {
  return { kind: map.level === "far" ? "community" : "entity", id: map.ids[node]!, label: map.labels[node]! };
}

interface CanvasProps {
  overview: GraphMap;
  map?: GraphMap;
  chosen?: Chosen;
  path?: EntityPath;
  onMove: (view: Box) => void;
  onNode: (node?: number) => void;
  renderer: { current: Renderer | undefined };
}

function MapCanvas({ overview, map, chosen, path, onMove, onNode, renderer }: CanvasProps) {
  const element = useRef<HTMLDivElement>(null);
  const [problem, setProblem] = useState<Problem>();
  const [n, setN] = useState(0); // counts the starts
  const listener = useRef(onNode);
  listener.current = onNode;
  const theme = useTheme();
  const address = readAddress();
  const { name, to } = address;
  const colours = coloursOf(address, overview);
  useEffect(() => {
    try {
      const lost = () => setProblem(asProblem(new Error(t("graph.lost"))));
      const moved = (view: Box) => {
        element.current!.dataset.view = view.map(Math.round).join(" ");
        onMove(view);
      };
      renderer.current = startRenderer(element.current!, overview.bounds, { onMove: moved, onNode: (node) => listener.current(node), onLost: lost });
    } catch {
      setProblem(asProblem(new Error(t("graph.noWebGL"))));
    }
    return () => {
      renderer.current?.end();
      renderer.current = undefined;
    };
  }, [n]);
  const scene = useMemo(() => map && sceneOf(map, colouring(overview, map, colours)), [map, colours]);
  useEffect(() => {
    if (!scene || !renderer.current) return;
    renderer.current.show(scene);
    element.current!.dataset.shown = `${scene.map.level} ${scene.map.ids.length}`;
  }, [scene, theme, n]);
  const near = map?.level === "near" ? `${name} ${to}` : "";
  useEffect(() => {
    if (map) renderer.current?.fit(near ? boxAround(map) : undefined);
  }, [near, n]);
  useEffect(() => {
    if (map) renderer.current?.mark(marksOf(map, chosen?.id ?? name, path));
  }, [map, chosen?.id, name, path, scene, theme, n]);
  if (problem)
    return (
      <ProblemNotice problem={problem} retry={() => (setProblem(undefined), setN(n + 1))}>
        <p>
          <a href={addressWith({ tab: "table" })}>{t("graph.openTable")}</a>
        </p>
      </ProblemNotice>
    );
  const onKey = (event: KeyboardEvent) => {
    const act = KEYS[event.key];
    if (!act || !renderer.current || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    act(renderer.current);
  };
  return (
    <div class="map-frame">
      <div class="map" ref={element} role="application" aria-label={t("graph.mapLabel")} aria-describedby="map-keys" tabIndex={0} onKeyDown={onKey} />
      <p id="map-keys" class="hidden">
        {t("graph.keys")}
      </p>
      <div class="map-buttons">
        <button aria-label={t("graph.zoomIn")} title={t("graph.zoomIn")} onClick={() => renderer.current?.zoom(1.6)}>
          +
        </button>
        <button aria-label={t("graph.zoomOut")} title={t("graph.zoomOut")} onClick={() => renderer.current?.zoom(1 / 1.6)}>
          −
        </button>
        <button aria-label={t("graph.fit")} title={t("graph.fit")} onClick={() => renderer.current?.fit(near ? boxAround(map!) : undefined)}>
          ⤢
        </button>
      </div>
    </div>
  );
}

const KEYS: Record<string, (renderer: Renderer) => void> = {
  ArrowLeft: (renderer) => renderer.pan(-0.2, 0),
  ArrowRight: (renderer) => renderer.pan(0.2, 0),
  ArrowUp: (renderer) => renderer.pan(0, -0.2),
  ArrowDown: (renderer) => renderer.pan(0, 0.2),
  "+": (renderer) => renderer.zoom(1.6),
  "-": (renderer) => renderer.zoom(1 / 1.6),
  "0": (renderer) => renderer.fit(),
};

/** A number that changes with the theme: the map is then drawn in other colours. */
function useTheme(): number {
  const [n, setN] = useState(0);
  useEffect(() => {
    const next = () => setN((old) => old + 1);
    const media = matchMedia("(prefers-color-scheme: dark)");
    const observer = new MutationObserver(next);
    observer.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    media.addEventListener("change", next);
    return () => {
      observer.disconnect();
      media.removeEventListener("change", next);
    };
  }, []);
  return n;
}

/** The communities that no other contains, the largest first: they have the colours of the legend in this order. */
function coarsest(overview: GraphMap): number[] {
  const { parent, size } = overview.nodes;
  return overview.ids.flatMap((_, node) => (parent![node]! < 0 ? [node] : [])).sort((a, b) => size[b]! - size[a]!);
}

function colouring(overview: GraphMap, map: GraphMap, colours: Colouring): (node: number) => string {
  const { type, community } = map.nodes;
  if (colours === "type") {
    const placeByType = placesOfTypes(overview.types);
    const places = map.types.map((name) => placeByType.get(name) ?? -1);
    return (node) => paletteColour(places[type[node]!] ?? -1);
  }
  const placeById = new Map(coarsest(overview).map((node, place) => [overview.ids[node]!, place]));
  const places = map.communities.map((id) => placeById.get(id) ?? -1);
  return (node) => paletteColour(places[community[node]!] ?? -1);
}

function boxAround(map: GraphMap): Box {
  const [xs, ys] = [[...map.nodes.x], [...map.nodes.y]];
  return [Math.min(...xs) - 4, Math.min(...ys) - 2, Math.max(...xs) + 4, Math.max(...ys) + 2];
}

function marksOf(map: GraphMap, id: string, path?: EntityPath): Marks {
  if (path) {
    const nodes = path.entities.map((entity) => map.ids.indexOf(entity.key));
    if (nodes.includes(-1)) return NO_MARKS; // the map of the path is on its way
    return { nodes, lines: nodes.slice(1).map((node, index) => [nodes[index]!, node]) };
  }
  const node = map.ids.indexOf(id);
  return node < 0 ? NO_MARKS : { nodes: [node], lines: neighboursOf(map, node).map((other) => [node, other]) };
}

/** A search for one entity by the beginning of its name. */
function EntitySearch({ label, choose }: { label: string; choose: (entity: Entity) => void }) {
  const [text, setText] = useState("");
  const prefix = text.trim();
  const result = useLoaded<Entity[]>(async (abort) => (prefix ? (await get<{ entities: Entity[] }>("/entities", { prefix, k: 8 }, abort)).entities : []), prefix);
  const take = (entity: Entity) => {
    setText("");
    choose(entity);
  };
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    if (result.value?.[0]) take(result.value[0]);
  };
  return (
    <form class="entity-search" role="search" aria-label={label} onSubmit={submit}>
      <label class="field">
        {label}
        <input type="search" value={text} autocomplete="off" dir="auto" onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      {result.problem && <ProblemNotice problem={result.problem} retry={result.reload} />}
      {prefix && result.value && (
        <ul aria-label={t("graph.results")} onKeyDown={moveFocus}>
          {result.value.map((entity) => (
            <li key={entity.key}>
              <button type="button" class="quiet" onClick={() => take(entity)}>
                <bdi>{entity.name}</bdi> <span class="small">{entity.type}</span>
              </button>
            </li>
          ))}
          {!result.value.length && !result.isLoading && <li class="small">{t("graph.noMatch")}</li>}
        </ul>
      )}
    </form>
  );
}

function moveFocus(event: KeyboardEvent) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const buttons = [...(event.currentTarget as HTMLElement).querySelectorAll("button")];
  buttons[buttons.indexOf(document.activeElement as HTMLButtonElement) + step]?.focus();
}

interface FocusProps {
  name: string;
  address: Address;
  map?: GraphMap;
  paths: { value?: EntityPath[]; problem?: Problem; isLoading: boolean; reload: () => void };
}

/** The entity that the map is about: what it is, how many neighbours are shown, and its path to another entity. */
function Focus({ name, address, map, paths }: FocusProps) {
  return (
    <section class="card">
      <EntitySummary name={name} />
      {!address.to && map?.level === "near" && map.n_more_nodes > 0 && (
        <p>
          <a class="button" href={addressWith({ near: Math.min(address.near * 3, MAX_NEAR) })}>
            {t("graph.moreNeighbours", { n: map.n_more_nodes })}
          </a>
        </p>
      )}
      <EntitySearch label={t("graph.pathTo")} choose={(entity) => go(addressWith({ to: entity.key, path: 0 }))} />
      {address.to && (
        <>
          {paths.problem && <ProblemNotice problem={paths.problem} retry={paths.reload} />}
          {!paths.isLoading && paths.value?.length === 0 && <p class="notice">{t("graph.noPath", { name: address.to })}</p>}
          <ol class="paths" aria-label={t("graph.paths")}>
            {paths.value?.map((path, place) => (
              <li key={place}>
                <a href={addressWith({ path: place })} aria-current={place === address.path ? "true" : undefined} dir="auto">
                  {path.entities.map((entity) => entity.name).join(" → ")}
                </a>
                {place === address.path && (
                  <ul class="small">
                    {path.relations.map((relation) => (
                      <li key={relation.id} dir="auto">
                        {relation.description.split("\n")[0]}
                      </li>
                    ))}
                  </ul>
                )}
              </li>
            ))}
          </ol>
          <a href={addressWith({ to: "", path: 0 })}>{t("graph.noMorePath")}</a>
        </>
      )}
    </section>
  );
}

function EntitySummary({ name }: { name: string }) {
  const details = useLoaded((abort) => get<{ entity: Entity }>(`/entities/${encodeURIComponent(name).replaceAll("%2F", "/")}`, {}, abort), name);
  return (
    <Await from={details}>
      {({ entity }) => (
        <>
          <h2 dir="auto">
            <a href={href("entities", entity.key)}>{entity.name}</a>
          </h2>
          <p class="small">
            {entity.type} · {t("count.relations", { n: entity.degree })}
          </p>
          <p dir="auto">{entity.description.split("\n")[0]}</p>
        </>
      )}
    </Await>
  );
}

interface ReportReply {
  report: { summary?: string; title?: string } | null;
}

function ChosenCard({ chosen, focus, map, zoom }: { chosen: Chosen; focus: string; map?: GraphMap; zoom: (box: Box) => void }) {
  const node = map?.ids.indexOf(chosen.id) ?? -1;
  if (chosen.kind === "entity")
    return (
      <section class="card" data-chosen={chosen.id}>
        <EntitySummary name={chosen.id} />
        {map && neighboursOf(map, node).includes(map.ids.indexOf(focus)) && <RelationTo focus={focus} other={chosen.id} />}
        <p class="actions">
          <a class="button" href={addressWith({ name: chosen.id, to: "", path: 0, near: N_NEIGHBOURS })}>
            {t("graph.neighbours")}
          </a>
          {focus && (
            <a class="button" href={addressWith({ to: chosen.id, path: 0 })}>
              {t("graph.pathHere")}
            </a>
          )}
        </p>
      </section>
    );
  return (
    <section class="card" data-chosen={chosen.id}>
      <h2 dir="auto">{chosen.label}</h2>
      {map && node >= 0 && <p class="small">{t("count.entities", { n: map.nodes.size[node]! })}</p>}
      <Report id={chosen.id} />
      <p class="actions">
        {map && node >= 0 && <button onClick={() => zoom(discBox(map, node))}>{t("graph.zoomIn")}</button>}
        <a class="button" href={addressWith({ community: [chosen.id], detail: "middle" })}>
          {t("graph.itsEntities")}
        </a>
      </p>
    </section>
  );
}

/** What the documents say of two entities together. */
function RelationTo({ focus, other }: { focus: string; other: string }) {
  const details = useLoaded((abort) => get<{ relation: Relation }>("/relation", { first: focus, second: other }, abort), `${focus} ${other}`);
  return (
    <Await from={details}>
      {({ relation }) => (
        <blockquote class="relation" dir="auto" aria-label={t("graph.relations")}>
          {relation.description}
        </blockquote>
      )}
    </Await>
  );
}

function discBox(map: GraphMap, node: number): Box {
  const { x, y, radius } = map.nodes;
  const r = radius?.[node] ?? 10;
  return [x[node]! - r, y[node]! - r, x[node]! + r, y[node]! + r];
}

/** What the report on a community says; nothing where none is written. */
function Report({ id }: { id: string }) {
  const details = useLoaded(async (abort) => {
    try {
      return (await get<ReportReply>(`/reports/${encodeURIComponent(id)}`, {}, abort)).report;
    } catch (error) {
      if (asProblem(error).status === 404) return null;
      throw error;
    }
  }, id);
  if (details.problem) return <ProblemNotice problem={details.problem} retry={details.reload} />;
  return details.value?.summary ? <p dir="auto">{details.value.summary}</p> : null;
}

/** The filters, which also say what the colours mean. */
function Legend({ overview, address }: { overview: GraphMap; address: Address }) {
  const colours = coloursOf(address, overview);
  const communities = useMemo(() => coarsest(overview), [overview]);
  const places = useMemo(() => new Map(communities.map((node, place) => [overview.ids[node]!, place])), [communities]);
  const placeByType = useMemo(() => placesOfTypes(overview.types), [overview]);
  const others = address.community.filter((id) => (places.get(id) ?? N_COMMUNITIES) >= N_COMMUNITIES);
  const rows = [...communities.slice(0, N_COMMUNITIES).map((node) => overview.ids[node]!), ...others];
  const text = (id: string) => {
    const node = overview.ids.indexOf(id);
    return node < 0 ? id : `${overview.labels[node]} (${number(overview.nodes.size[node]!)})`;
  };
  return (
    <>
      <Filter
        title={t("graph.types")}
        chosen={address.type}
        rows={overview.types.map((name) => [name, name || t("graph.untyped"), colours === "type" ? paletteColour(placeByType.get(name)!) : undefined])}
        choose={(type) => change({ type })}
      />
      <Filter
        title={t("graph.communities")}
        chosen={address.community}
        rows={rows.map((id) => [id, text(id), colours === "community" ? paletteColour(places.get(id) ?? -1) : undefined])}
        choose={(community) => change({ community })}
      />
    </>
  );
}

interface FilterProps {
  title: string;
  chosen: string[];
  rows: [string, string, string | undefined][]; // value, text, colour
  choose: (values: string[]) => void;
}

function Filter({ title, chosen, rows, choose }: FilterProps) {
  return (
    <fieldset class="filter">
      <legend>{title}</legend>
      <div class="filter-rows">
        {rows.map(([value, text, colour]) => (
          <label key={value}>
            <input
              type="checkbox"
              checked={chosen.includes(value)}
              onChange={(event) => choose(event.currentTarget.checked ? [...chosen, value] : chosen.filter((other) => other !== value))}
            />
            {colour && <span class="swatch" style={{ background: colour }} />}
            <bdi>{text}</bdi>
          </label>
        ))}
      </div>
      {chosen.length > 0 && (
        <button class="quiet" onClick={() => choose([])}>
          {t("graph.showAll")}
        </button>
      )}
    </fieldset>
  );
}

// The formats of the server, with what their users call them; a test compares the list with that of the server.
const FORMATS: Record<string, string> = {
  html: "HTML", json: "JSON", graphml: "GraphML", gexf: "GEXF", jsonl: "JSON Lines",
  csv: "CSV", parquet: "Parquet", cypher: "Cypher", turtle: "Turtle", obsidian: "Obsidian",
};

/** Save a file of the server; what it refuses is said, for example a format that needs another package. */
async function download(url: string): Promise<void> {
  say(t("graph.exporting"));
  try {
    const response = await send("GET", url);
    const name = /filename="([^"]+)"/.exec(response.headers.get("content-disposition") ?? "")?.[1] ?? "graph";
    save(name, await response.blob(), response.headers.get("content-type") ?? "");
  } catch (error) {
    const { message, remedy } = asProblem(error);
    say(`${message} ${remedy}`);
  }
}

function Export({ address: { type, community, tab }, renderer }: { address: Address; renderer: { current: Renderer | undefined } }) {
  const file = (format: string) => workspaceUrl("/graph/export") + query({ format, type, community });
  const picture = () => void renderer.current?.png().then((blob) => save("graph.png", blob, "image/png"));
  return (
    <section>
      <h2>{t("graph.export")}</h2>
      <p class="actions formats">
        {tab === "map" && <button onClick={picture}>PNG</button>}
        {Object.entries(FORMATS).map(([format, name]) => (
          <a key={format} class="button" href={file(format)} download onClick={(event) => (event.preventDefault(), void download(file(format)))}>
            {name}
          </a>
        ))}
      </p>
      <p class="small">{t(type.length || community.length ? "graph.exportPart" : "graph.exportWhole")}</p>
    </section>
  );
}

/** The same map in words: for screen readers, and where there is no WebGL. */
function Tables({ map }: { map: GraphMap }) {
  const { nodes, edges, ids, labels } = map;
  const isFar = map.level === "far";
  const link = (node: number) => (
    <a href={isFar ? addressWith({ community: [ids[node]!], detail: "middle" }) : addressWith({ name: ids[node]!, to: "", path: 0, near: N_NEIGHBOURS })} dir="auto">
      {labels[node]}
    </a>
  );
  return (
    <>
      <Rows
        caption={isFar ? t("graph.communities") : t("nav.entities")}
        heads={[t("graph.name"), t("graph.type"), isFar ? t("nav.entities") : t("graph.relations")]}
        n={ids.length}
        row={(node) => [link(node), map.types[nodes.type[node]!], number(nodes.size[node]!)]}
      />
      <Rows
        caption={t("graph.relations")}
        heads={[t("graph.from"), t("graph.to"), t("graph.weight")]}
        n={edges.weight.length}
        row={(edge) => [link(edges.source[edge]!), link(edges.target[edge]!), number(edges.weight[edge]!, 1)]}
      />
    </>
  );
}

function Rows({ caption, heads, n, row }: { caption: string; heads: string[]; n: number; row: (place: number) => unknown[] }) {
  const [nShown, setShown] = useState(N_ROWS);
  return (
    <div class="wide" tabIndex={0} role="region" aria-label={caption}>
      <table>
        <caption>
          {caption} ({number(n)})
        </caption>
        <thead>
          <tr>
            {heads.map((head) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {Array.from({ length: Math.min(n, nShown) }, (_, place) => (
            <tr key={place}>
              {row(place).map((cell, column) => (
                <td key={column}>{cell as string}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {n > nShown && <button onClick={() => setShown(nShown + 5 * N_ROWS)}>{t("more", { n: n - nShown })}</button>}
    </div>
  );
}
